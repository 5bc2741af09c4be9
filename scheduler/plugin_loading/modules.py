"""Runs the code of plugins: files as modules of a package that is made for their directory, and installed modules.

The files of a directory are no part of Python's path: nothing else can import them, and none of them stands in the
way of a library, whatever its name is. Among themselves they may write `from ._shared import …`. They are compiled
from the bytes that were read, never from compiled files next to them, which may be of another version.
"""

import importlib
import importlib.abc
import importlib.util
import itertools
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Final

from scheduler.api.wording.text import shortened
from scheduler.framework.arguments import did_you_mean
from scheduler.plugin_loading.sources import Directory, PluginFile

PREFIX: Final = "loadmaster_plugins_"
"""Begins the name of a package of files; each load has packages of its own, so that old plugins go on undisturbed."""

MAX_DETAIL: Final = 400
"""Characters of what a plugin's code says of a problem."""

MAX_SOURCE: Final = 80
"""Characters of a line of source."""

_NO_NAME: Final = re.compile(r"cannot import name '(\w+)' from '([\w.]+)'")

_numbers = itertools.count(1)


class FilesPackage(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """The files of one directory as a package in memory. `close` when its plugins are not needed any more."""

    def __init__(self, directory: Directory) -> None:
        self.name = f"{PREFIX}{next(_numbers)}"
        self._files: dict[str, PluginFile] = {}
        for file in directory.files:
            name = f"{self.name}.{file.stem.replace('.', '_')}"
            while name in self._files:  # a.b.py next to a_b.py
                name += "_"
            self._files[name] = file
        self._path = directory.path
        sys.meta_path.append(self)

    def close(self) -> None:
        """Forget the modules. Functions that import something of the package only when they are called fail then."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for name in [name for name in sys.modules if name == self.name or name.startswith(f"{self.name}.")]:
            del sys.modules[name]

    def plugin_files(self) -> Iterator[tuple[str, PluginFile]]:
        """Yield the module's name and the file of each that should have a plugin."""
        return ((name, file) for name, file in self._files.items() if file.is_plugin)

    def has(self, module: str) -> bool:
        """Return whether there is a file for a module that a plugin tried to import by itself."""
        return f"{self.name}.{module}" in self._files

    # What the import system asks for.

    def find_spec(self, fullname: str, path: object, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname == self.name:
            return ModuleSpec(fullname, self, origin=self._path, is_package=True)
        file = self._files.get(fullname)
        if file is None:
            return None
        spec = ModuleSpec(fullname, self, origin=file.path)
        spec.has_location = True  # so that tracebacks and messages name the file
        return spec

    def get_source(self, fullname: str) -> str | None:
        file = self._files.get(fullname)
        return None if file is None else importlib.util.decode_source(file.content)

    def exec_module(self, module: ModuleType) -> None:
        file = self._files.get(module.__name__)
        if file is not None:  # the package itself is empty
            source = importlib.util.decode_source(file.content)
            if "\0" in source:
                raise ValueError("it has a null byte")
            exec(compile(source, file.path, "exec", dont_inherit=True), module.__dict__)


class ImportProblem(Exception):
    """A module cannot be imported: the text is one line, with the place where there is one."""


def import_file(package: FilesPackage, name: str, file: PluginFile) -> ModuleType:
    """Import a file of a package. Raises ImportProblem."""
    with _problems_of(file.path, name, package.has):
        return importlib.import_module(name)


def import_installed(name: str, named_by: str) -> ModuleType:
    """Import a module by its name on Python's path; `named_by` says who wants it. Raises ImportProblem."""
    with _problems_of(named_by, name):
        return importlib.import_module(name)


@contextmanager
def _problems_of(place: str, name: str, is_in_same_folder: Callable[[str], bool] = lambda _: False) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ImportProblem(_worded(error, place, name, is_in_same_folder)) from error


def _worded(error: BaseException, place: str, name: str, is_in_same_folder: Callable[[str], bool]) -> str:
    if isinstance(error, SyntaxError) and error.filename:
        text = f": {shortened(' '.join(error.text.split()), MAX_SOURCE)}" if error.text else ""
        return f"{error.filename}:{error.lineno or 1}: {type(error).__name__}: {error.msg}{text}"
    at = _place_in(error, name)
    at = place if not at else at if at.startswith(f"{place}:") else f"{place}, {at}"
    if isinstance(error, SystemExit):
        return f"{at}: it ends the program, with sys.exit or the like, while it is imported"
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{at}: {_not_found(error.name, is_in_same_folder)}"
    if isinstance(error, ImportError) and (match := _NO_NAME.match(str(error))):
        known = dir(sys.modules.get(match[2], None))
        return f"{at}: there is no {match[1]!r} in {match[2]}{did_you_mean(match[1], known)}"
    return f"{at}: {type(error).__name__}: {shortened(' '.join(str(error).split()), MAX_DETAIL)}"


def _not_found(name: str, is_in_same_folder: Callable[[str], bool]) -> str:
    top = name.partition(".")[0]
    if top.startswith(PREFIX):
        return f"there is no file {name.partition('.')[2]}.py beside it"
    if is_in_same_folder(top):
        return f"there is no module {name!r}: the files of a directory import each other by `from .{name} import …`"
    if top in sys.modules:
        return f"there is no module {name!r}{did_you_mean(name, sys.modules)}"
    return f"there is no module {name!r}: it is not installed where Loadmaster runs"


def _place_in(error: BaseException, name: str) -> str:
    """File and innermost line of the module itself, or of the package that it is in; empty if it never ran."""
    place, trace = "", error.__traceback__
    is_file = name.startswith(PREFIX)
    while trace is not None:
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module == name or (not is_file and module.partition(".")[0] == name.partition(".")[0]):
            place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place

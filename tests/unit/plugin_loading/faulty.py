"""Plugins that cannot be loaded, and what is said of each."""

from typing import Final, NamedTuple


class Faulty(NamedTuple):
    """A file, and the lines that are printed of it."""

    source: str
    problems: tuple[str, ...]
    """`FILE` stands for the file's path."""

    ends_its_process: bool = False


HEAD: Final = """\
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from scheduler import framework as fw
"""
"""Four lines before what follows."""


def _body(source: str, *problems: str) -> Faulty:
    return Faulty(HEAD + source, problems)


def _filter(inside: str, *problems: str) -> Faulty:
    """A plugin whose class begins in line 6, with `inside` from line 8 on, and a filter that is right."""
    lines = ["@dataclass", "class Mine(fw.FilterPlugin):", '    name: ClassVar[str] = "Mine"']
    lines += [f"    {line}" for line in inside.splitlines()]
    lines += ["    def filter(self, state, pod, node):", "        return None"]
    return _body("\n".join(lines), *problems)


def _methods(inside: str, *problems: str, base: str = "fw.FilterPlugin") -> Faulty:
    """A plugin whose class begins in line 5, with `inside` from line 7 on."""
    lines = [f"class Mine({base}):", '    name = "Mine"', *(f"    {line}" for line in inside.splitlines())]
    return _body("\n".join(lines), *problems)


NO_PLUGIN: Final = (
    "FILE: there is no plugin in it: a class that inherits FilterPlugin, or another one of scheduler.framework"
)
ENDS: Final = "it ends the program, with sys.exit or the like, while it is imported"
GOOD: Final = "def filter(self, state, pod, node):\n    return None"

FAULTY: Final[dict[str, Faulty]] = {
    # What Python cannot read or run.
    "a syntax error": Faulty("class Mine(:\n", ("FILE:1: SyntaxError: invalid syntax: class Mine(:",)),
    "an indentation error": Faulty(
        "def f():\nreturn 1\n",
        ("FILE:2: IndentationError: expected an indented block after function definition on line 1: return 1",),
    ),
    "tabs and spaces": Faulty(
        "if 1:\n\tx = 1\n        y = 2\n",
        ("FILE:3: TabError: inconsistent use of tabs and spaces in indentation: y = 2",),
    ),
    "a null byte": Faulty("x = 1\0", ("FILE: ValueError: it has a null byte",)),
    "not UTF-8": Faulty(
        "x = 1\ny = 2\nz = '\udcff'\n",
        ("FILE: UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 17: invalid start byte",),
    ),
    "nested too deeply": Faulty(
        "x = " + "(" * 300 + ")" * 300,
        (f"FILE:1: SyntaxError: too many nested parentheses: x = {'(' * 76}…",),
    ),
    "a library that is not installed": Faulty(
        "import os\nimport requests_of_mine\n",
        ("FILE:2: there is no module 'requests_of_mine': it is not installed where Loadmaster runs",),
    ),
    "a module of a library that does not exist": Faulty(
        "import json.decodr\n",
        ("FILE:1: there is no module 'json.decodr'; did you mean 'json.decoder'?",),
    ),
    "a name that the framework does not have": Faulty(
        "from scheduler.framework import FiltrPlugin\n",
        ("FILE:1: there is no 'FiltrPlugin' in scheduler.framework; did you mean 'FilterPlugin'?",),
    ),
    "another file as if it were installed": Faulty(
        "import _helpers\n",
        (
            "FILE:1: there is no module '_helpers': the files of a directory import each other by "
            "`from ._helpers import …`",
        ),
    ),
    "another file that is not there": Faulty(
        "from ._nothing import x\n", ("FILE:1: there is no file _nothing.py beside it",)
    ),
    "a name that is not defined": Faulty("x = 1\ny = x + z\n", ("FILE:2: NameError: name 'z' is not defined",)),
    "a file that it reads and that is missing": Faulty(
        "def read():\n    return open('/no/such/file')\nread()\n",
        ("FILE:2: FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'",),
    ),
    "endless recursion": Faulty(
        "def f():\n    return f()\nf()\n", ("FILE:2: RecursionError: maximum recursion depth exceeded",)
    ),
    "sys.exit": Faulty("import sys\nsys.exit(0)\n", (f"FILE:2: {ENDS}",)),
    "exit without sys": Faulty("raise SystemExit\n", (f"FILE:1: {ENDS}",)),
    "os._exit": Faulty("import os\n\nos._exit(7)\n", (f"FILE:3: {ENDS}",), ends_its_process=True),
    "an endless loop": Faulty(
        "def wait():\n    while True: pass\n\nwait()\n",
        ("FILE:2: it is still being imported after 2 s: an endless loop? What takes long belongs in a task",),
        ends_its_process=True,
    ),
    "a wait for something": Faulty(
        "import threading\nthreading.Event().wait()\n",
        ("FILE:2: it is still being imported after 2 s: an endless loop? What takes long belongs in a task",),
        ends_its_process=True,
    ),
    "a crash in C": Faulty(
        "import ctypes\nctypes.string_at(0)\n",
        ("FILE:2: it crashed Python while it was imported: Segmentation fault",),
        ends_its_process=True,
    ),
    "a signal to itself": Faulty(
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n",
        ("FILE: it ended Python while it was imported, by the signal SIGKILL",),
        ends_its_process=True,
    ),
    "an error of several lines": Faulty(
        "raise ValueError('one\\ntwo\\n\\x1b[31mthree')\n", ("FILE:1: ValueError: one two \\x1b[31mthree",)
    ),
    # What is no plugin.
    "an empty file": Faulty("", (NO_PLUGIN,)),
    "a function": _body("def Mine(state, pod, node):\n    return None\n", NO_PLUGIN),
    "an instance": _body('Mine = {"name": "Mine"}\n', NO_PLUGIN),
    "a class that inherits nothing": _body(
        'class Mine:\n    name = "Mine"\n    def filter(self, state, pod, node):\n        return None\n',
        "FILE: there is no plugin in it: Mine has a method filter, but does not inherit FilterPlugin",
    ),
    "a plugin that it only imports": Faulty("from plugins.node_name import NodeName\n", (NO_PLUGIN,)),
    "a class that inherits no extension point": _methods(
        "x = 1",
        "FILE:5: Mine: it inherits no extension point, such as FilterPlugin: it would never be called",
        base="fw.Plugin",
    ),
    "a class that only signs": _methods(
        "aspects = fw.Aspect.LABELS\ndef sign(self, pod):\n    return pod.name",
        "FILE:5: Mine: it inherits no extension point, such as FilterPlugin: it would never be called",
        base="fw.SignPlugin",
    ),
    # Its name.
    "no name": _body(
        f"class Mine(fw.FilterPlugin):\n    {GOOD.replace(chr(10), chr(10) + '    ')}\n",
        'FILE:5: Mine: it has no name: write `name: ClassVar[str] = "Mine"` into it',
    ),
    "a name that is a number": _methods(f"name = 7\n{GOOD}", "FILE:7: Mine: its name should be a string, not 7"),
    "a name without end": _methods(
        f'name = "x" * 10_000_000\n{GOOD}',
        f"FILE:7: Mine: its name '{'x' * 99}… should have at most 100 characters",
    ),
    "an empty name": _methods(f'name = ""\n{GOOD}', "FILE:7: Mine: its name '' should be one word"),
    "a name of two words": _methods(
        f'name = "Gpu guard"\n{GOOD}', "FILE:7: Mine: its name 'Gpu guard' should be one word"
    ),
    "a name with a line break": _methods(
        f'name = "Gpu\\nGuard"\n{GOOD}', "FILE:7: Mine: its name 'Gpu\\nGuard' should be one word"
    ),
    "a name that would be an argument": _body(
        '@dataclass\nclass Mine(fw.FilterPlugin):\n    name: str = "Mine"\n    def filter(self, state, pod, node):\n'
        "        return None\n",
        "FILE:7: Mine: name would be an argument of the plugin: write `name: ClassVar[…] = …`",
    ),
    "the name of an in-tree plugin": _methods(
        f'name = "NodeName"\n{GOOD}', "FILE:5: 'NodeName' is the name of a plugin that is in-tree: choose another one"
    ),
    "a copy of an in-tree plugin with its name": _body(
        "from plugins.node_name import NodeName\nclass Mine(NodeName):\n    pass\n",
        "FILE:6: 'NodeName' is the name of a plugin that is in-tree: choose another one",
    ),
    "two plugins of one name": _body(
        "\n".join(
            f"class {cls}(fw.FilterPlugin):\n    name = 'Mine'\n    def filter(self, a, b, c):\n        pass"
            for cls in ("A", "B")
        ),
        "FILE:9: 'Mine' is the name of another plugin already, FILE:5",
    ),
    # Its methods.
    "a missing method": _methods(
        "def events_to_register(self):\n    return ()",
        "FILE:5: Mine: it lacks the method filter(self, state, pod, node)",
    ),
    "a misspelt method": _methods(
        "def filtre(self, state, pod, node):\n    return None",
        "FILE:5: Mine: it lacks the method filter(self, state, pod, node); is its method filtre meant to be it?",
    ),
    "a method without its base": _methods(
        f"{GOOD}\ndef score(self, state, pod, node):\n    return 1",
        "FILE:9: Mine: it has a method score, which is never called: inherit ScorePlugin, or choose another name",
    ),
    "too few parameters": _methods(
        "def filter(self, pod, node):\n    return None",
        "FILE:7: Mine: filter is called with (self, state, pod, node), but takes (self, pod, node)",
    ),
    "too many parameters": _methods(
        "def filter(self, state, pod, node, more):\n    return None",
        "FILE:7: Mine: filter is called with (self, state, pod, node), but takes (self, state, pod, node, more)",
    ),
    "no self": _methods(
        "@staticmethod\ndef filter(state, pod):\n    return None",
        "FILE:8: Mine: filter is called with (self, state, pod, node), but takes (state, pod)",
    ),
    "a method that is a value": _methods("filter = 5", "FILE:7: Mine: filter is no method, but a int"),
    "a method that is a property": _methods(
        "@property\ndef filter(self):\n    return None", "FILE:8: Mine: filter is no method, but a property"
    ),
    "a coroutine where none is awaited": _methods(
        "async def filter(self, state, pod, node):\n    return None",
        "FILE:7: Mine: filter is a coroutine, but is not awaited: write `def filter`",
    ),
    "no coroutine where one is awaited": _methods(
        "def bind(self, state, pod, node_name):\n    return None",
        "FILE:7: Mine: bind is awaited: write `async def bind`",
        base="fw.BindPlugin",
    ),
    "a generator": _methods(
        "def filter(self, state, pod, node):\n    yield None",
        "FILE:7: Mine: filter has a `yield`, so that it answers with a generator: return the answer",
    ),
    "Filter in both forms": _methods(
        f"{GOOD}\ndef filter_nodes(self, state, pod, nodes, rows):\n    return None\n"
        "def status_of(self, state, pod, code):\n    return None",
        "FILE:5: Mine: it inherits FilterPlugin and FilterNodesPlugin, of which a plugin has one",
        base="fw.FilterPlugin, fw.FilterNodesPlugin",
    ),
    "a signature without aspects": _methods(
        f"def sign(self, pod):\n    return None\n{GOOD}",
        "FILE:5: Mine: it signs pods, so it says what it reads of nodes: "
        "`aspects: ClassVar[fw.Aspect] = fw.Aspect.LABELS`",
        base="fw.FilterPlugin, fw.SignPlugin",
    ),
    # What it declares.
    "a resource that is no tuple": _filter(
        'reads: ClassVar[str] = "Service"',
        "FILE:8: Mine: reads should be a tuple of resources, such as (fw.SERVICE,), not 'Service'",
    ),
    "a flag that is no bool": _filter(
        "reads_raw_pods: ClassVar[bool] = 1", "FILE:8: Mine: reads_raw_pods should be True or False, not 1"
    ),
    "parts that are no tuple": _filter(
        'parts: ClassVar[Mapping] = {"Service": "spec.selector"}',
        "FILE:8: Mine: parts should be a mapping of resources to tuples of paths, such as "
        "{fw.SERVICE: (\"spec.selector\",)}, not {'Service': 'spec.selector'}",
    ),
    "writes that are strings": _filter(
        'writes: ClassVar[tuple] = ("pods",)', "FILE:8: Mine: writes should be a tuple of fw.Write, not ('pods',)"
    ),
    "aspects that are a string": _methods(
        f'aspects = "labels"\ndef sign(self, pod):\n    return None\n{GOOD}',
        "FILE:7: Mine: aspects should be fw.Aspect.LABELS or others of fw.Aspect, joined by |, not 'labels'",
        base="fw.FilterPlugin, fw.SignPlugin",
    ),
    # Its arguments.
    "an argument without a default behind one that has it": _body(
        "@dataclass\nclass Mine(fw.FilterPlugin):\n    a: int = 1\n    b: int\n",
        "FILE:5: TypeError: non-default argument 'b' follows default argument",
    ),
    "an argument of a type that no file has": _filter(
        "when: complex = 0j",
        "FILE:6: Mine: its field when has the type <class 'complex'>, which cannot be read from a file",
    ),
    "an argument of a type that does not exist": _filter(
        "when: 'Tomorrow' = 0",
        "FILE:6: Mine: the types of its fields cannot be read: NameError: name 'Tomorrow' is not defined",
    ),
    "a list as a default": _filter(
        "pools: list = []",
        "FILE:5: ValueError: mutable default <class 'list'> for field pools is not allowed: use default_factory",
    ),
    "the handle as an argument": _filter(
        "handle: fw.Handle = None",
        "FILE:8: Mine: handle would be an argument of the plugin: take the handle in `start(self, handle)`",
        "FILE:6: Mine: its field handle has the type <class 'scheduler.framework.handle.Handle'>, which cannot be "
        "read from a file",
    ),
}

"""The line of a class, of one of its methods or of one of its attributes, for messages."""

import ast
import inspect
from functools import lru_cache
from types import ModuleType
from typing import NamedTuple


class Lines(NamedTuple):
    """The lines of one module. What is not found has the line of what it is in."""

    file: str
    classes: dict[str, int]
    members: dict[tuple[str, str], int]
    """(Class, method or attribute) → line."""

    def of(self, cls: str, member: str = "") -> str:
        """Return `file:line` of a class, or of a member of it."""
        line = self.members.get((cls, member)) or self.classes.get(cls)
        return f"{self.file}:{line}" if line else self.file


def lines_of(module: ModuleType) -> Lines:
    """Return the lines of a module that was imported, if its source is available."""
    try:
        source = inspect.getsource(module)
        file = inspect.getsourcefile(module) or module.__name__
    except (OSError, TypeError, SyntaxError):
        return Lines(getattr(module, "__file__", None) or module.__name__, {}, {})
    return lines_in(source, file)


@lru_cache(maxsize=64)
def lines_in(source: str | bytes, file: str) -> Lines:
    """Return the lines of a source that can be compiled."""
    lines = Lines(file, {}, {})
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            lines.classes.setdefault(node.name, node.lineno)
            for statement in node.body:
                for name in _names(statement):
                    lines.members[node.name, name] = statement.lineno
    return lines


def _names(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case _:
            return []

"""Writes docs/plugin-reference.md: what a plugin gets, from the code and its docstrings."""

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from scheduler.api import objects
from scheduler.api.pods.pod import Pod
from scheduler.framework import cycle_state, handle, pods, status
from scheduler.framework.nodes import nodes, stored_columns

PAGE: Final = Path(__file__).parents[2] / "docs" / "plugin-reference.md"

HEAD: Final = """\
# What a plugin gets

Pods, nodes and the handle, as plugins see them. [plugins.md](plugins.md) says how to use them. `make reference` writes
this page from the code.
"""
POD_TEXT: Final = """\
## Pod

The fields that scheduling reads are decoded for every pod. Names are the API's in snake case; a list is a tuple, a
field without a value is None or empty, and quantities (amounts) are as they were written. Fields without a type below
are strings, or structs of their name. All others are in `raw`, for plugins with `reads_raw_pods`.

"""
NODE_TEXT: Final = """\
## Node

`node.node` is the object, with these fields:

"""

DEPTH: Final = 3
"""Parts of the paths of pods that are listed."""

LIKE: Final = {
    "spec.initContainers": "`spec.containers`",
    "status.initContainerStatuses": "`status.containerStatuses`",
}
OURS: Final = {
    "Pod": (
        "derive_like",
        "has_changed_raw",
        "bound_to",
        "signatures",
        "reference",
        "share_requests",
        "takes_the_same_as",
    ),
    "PodNominator": ("add", "update", "delete", "kept_before", "has_gained"),
}
"""Members that are no plugin's business, by class."""


def text() -> str:
    """Return the page."""
    parts = [
        HEAD,
        POD_TEXT + "".join(_members(Pod)),
        "".join(_fields(_pod_rows(Pod, "", 1))),
        "## NodeInfo\n\nOne node, as Filter and Score get it in their plain form.\n\n"
        + "".join(_members(nodes.NodeInfo)),
        NODE_TEXT + "".join(_fields(_struct_rows(objects.Node, ""))),
        "## NodeColumns\n\nAll nodes at once, as the column forms get them.\n\n" + "".join(_members(nodes.NodeColumns)),
        "### Aspects\n\n" + "".join(_members(nodes.Aspect)),
        "### Pods on nodes\n\n`nodes.pods`:\n\n" + "".join(_members(pods.PodIndex)),
        "### Topology\n\n`nodes.topology(key)`:\n\n" + "".join(_members(pods.Topology)),
        "## Handle\n\nWhat `start` takes.\n\n" + "".join(_members(handle.Handle)),
        *_roles(),
        "## CycleState\n\n" + "".join(_members(cycle_state.CycleState)),
        "## Status\n\n" + "".join(_members(status.Status)),
    ]
    return "\n".join(part.rstrip("\n") + "\n" for part in parts)


def _roles() -> Iterator[str]:
    """The parts of a handle, those of stored columns included."""
    roles = (
        handle.ObjectLister,
        handle.ApiWriter,
        handle.Reader,
        handle.Access,
        handle.Tasks,
        handle.Jobs,
        handle.Repetition,
        handle.EventRecorder,
        handle.Binder,
        handle.PodNominator,
        handle.PodActivator,
        handle.WaitingPods,
        handle.WaitingPod,
        handle.PodsInPreBind,
        handle.Evictor,
        stored_columns.StoredColumns,
    )
    for role in roles:
        yield f"### {role.__name__}\n\n{_one_line(inspect.getdoc(role))}\n\n" + "".join(_members(role))


def _members(cls: type[Any]) -> Iterator[str]:
    """A line for each public member with its docstring; those without one share lines."""
    alike: list[str] = []
    for member, said in _documented(cls):
        if said and alike:
            yield f"- {', '.join(alike)}\n"
            alike.clear()
        if said:
            yield f"- `{member}`{_said(said)}\n"
        else:
            alike.append(f"`{member}`")
    if alike:
        yield f"- {', '.join(alike)}\n"


def _documented(cls: type[Any]) -> Iterator[tuple[str, str | None]]:
    """Yield each public member with its docstring."""
    tree = ast.parse(inspect.getsource(cls))
    (body,) = (node for node in tree.body if isinstance(node, ast.ClassDef))
    ours = OURS.get(cls.__name__, ())
    for index, statement in enumerate(body.body):
        match statement:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name[0] != "_" and name not in ours:
                yield _signature(statement), ast.get_docstring(statement)
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_") and cls is not Pod:
                yield f"{name}: {ast.unparse(statement.annotation)}", _below(body.body, index)
            case ast.Assign(targets=[ast.Name(id=name)]) if name.isupper():
                yield name, _below(body.body, index)


def _below(statements: list[ast.stmt], index: int) -> str | None:
    """The docstring below an attribute."""
    following = statements[index + 1] if index + 1 < len(statements) else None
    match following:
        case ast.Expr(value=ast.Constant(value=str(said))):
            return inspect.cleandoc(said)
        case _:
            return None


def _signature(function: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    returns = "" if function.returns is None else ast.unparse(function.returns).strip("'")
    if any(isinstance(each, ast.Name) and each.id == "property" for each in function.decorator_list):
        return f"{function.name}: {returns}"
    arguments = ast.unparse(function.args).removeprefix("self").removeprefix(", ")
    prefix = "await " if isinstance(function, ast.AsyncFunctionDef) else ""
    return f"{prefix}{function.name}({arguments})" + (f" -> {returns}" if returns != "None" else "")


def _said(docstring: str | None) -> str:
    said = _one_line(docstring)
    return f": {said[:1].lower() if said[1:2].islower() else said[:1]}{said[1:]}" if said else ""


def _one_line(docstring: str | None) -> str:
    return " ".join((docstring or "").split())


def _fields(rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    """Yield a line for each struct with its fields."""
    by_struct: dict[str, list[str]] = {}
    for struct, name, type_ in rows:
        is_plain = type_ == "str" or type_.lower().startswith(name.lower())
        by_struct.setdefault(struct, []).append(f"`{name}`" if is_plain else f"`{name}` ({type_})")
    for struct, fields in by_struct.items():
        yield f"- `{struct}`: {', '.join(fields)}\n"


def _pod_rows(struct: type[Any], path: str, depth: int) -> Iterator[tuple[str, str, str]]:
    """Yield the struct, the name and the type of each field."""
    for field in msgspec.structs.fields(struct):
        key, inner = field.encode_name, struct_in(field.type)
        at = f"{path}.{key}" if path else key
        if key.startswith("("):
            continue  # the engine's own
        if at in LIKE:
            yield path, key, f"as {LIKE[at]}"
        elif inner is not None and (depth < DEPTH or inner is objects.ResourceRequirements):
            yield from _pod_rows(inner, at, depth + 1)
        else:
            yield path, key, _type(field.type)


def struct_in(type_: Any) -> type[Any] | None:
    """Return the struct in a type such as `tuple[Container, ...] | None`, if there is one."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return type_
    return next(filter(None, map(struct_in, get_args(type_))), None)


def _struct_rows(struct: type[Any], path: str) -> Iterator[tuple[str, str, str]]:
    for field in msgspec.structs.fields(struct):
        if field.encode_name.startswith("("):
            continue  # the engine's own
        at = f"{path}.{field.name}" if path else field.name
        inner = struct_in(field.type)
        if inner is not None and path.count(".") < 1 and inner.__name__ not in ("OwnerReference",):
            yield from _struct_rows(inner, at)
        else:
            yield path, field.name, _type(field.type)


def _type(type_: Any) -> str:
    shown = type_.__name__ if isinstance(type_, type) and not hasattr(type_, "__args__") else str(type_)
    for module in ("scheduler.api.objects.", "collections.abc.", "datetime."):
        shown = shown.replace(module, "")
    return shown.replace("|", "or").replace(" or None", "").replace("Mapping[str, str or int or float]", "amounts")


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")

"""Pods with more than scheduling reads: the struct into which they are decoded for plugins that need it.

A need is the path of a field, as the API spells it: `spec.containers.command` is that field of all containers.
What is at its end comes whole. All needs of all enabled plugins together make one struct, a subclass of Pod; without
any, it is Pod itself, and nothing costs more.

    metadata.annotations[example.com/tier]    this annotation alone: a pod may have 256 KiB of them
"""

import functools
import operator
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, ClassVar, Final, Union, get_args, get_origin

import msgspec

from scheduler.api.near_names import near_names
from scheduler.api.objects import Wire
from scheduler.api.pod import Pod
from scheduler.api.undecoded import NotDecoded, fields_of

Tree = dict[str, "Tree"]
"""Field → what is needed of it; nothing means all."""

_ANNOTATION: Final = re.compile(r"(metadata\.annotations)\[([^\[\]]+)\]")


def need_problem(path: str) -> str | None:
    """What is wrong with a need, if anything."""
    try:
        pod_type((path,))
    except ValueError as error:
        return str(error)
    return None


def pod_type(needs: Iterable[str]) -> type[Pod]:
    """Return the struct for pods with what is needed. Raises ValueError for a path that pods do not have."""
    return _pod_type(frozenset(needs))


@lru_cache(maxsize=256)
def _pod_type(needs: frozenset[str]) -> type[Pod]:
    tree: Tree = {}
    keys: set[str] = set()
    for need in sorted(needs, key=len, reverse=True):  # so that a whole object takes the place of its parts
        match = _ANNOTATION.fullmatch(need)
        if match is not None:
            keys.add(match[2])
            continue
        if "[" in need:
            hint = "lists are written without [0], and only of metadata.annotations one entry can be taken, by its key"
            raise ValueError(f"{need}: {hint}")
        *above, last = need.split(".")
        inner = tree
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = {}
    made = _with(Pod, tree, "") if tree else Pod
    whole = "annotations" in tree.get("metadata", {}) or tree.get("metadata") == {}
    if keys and not whole:
        made = _with_annotations(made, keys)
    if made is Pod:
        return Pod
    has_changed = _has_changed if "status" in tree else _has_changed_but_for_status
    return _subclass(made, [], members={"has_changed_for_plugins": has_changed})


def _has_changed(new: Pod, old: Pod) -> bool:
    return new.status != old.status or _has_changed_but_for_status(new, old)


def _has_changed_but_for_status(new: Pod, old: Pod) -> bool:
    before, after = old.metadata, new.metadata
    after = msgspec.structs.replace(after, resource_version=before.resource_version, generation=before.generation)
    return new.spec != old.spec or after != before


def paths_of(struct: str) -> list[str]:
    """Return the paths at which pods have objects of this struct."""
    places = _places().get(struct, ["…"])
    return sorted(places, key=lambda path: (not path.startswith("spec.containers"), path.count("."), path))


@cache
def _places() -> Mapping[str, list[str]]:
    """Struct → the paths at which pods have it."""
    found: dict[str, list[str]] = {}

    def visit(struct: type[Any], path: str) -> None:
        found.setdefault(struct.__name__, []).append(path)
        for key, field in fields_with_rest(struct).items():
            inner = struct_in(field.type)
            if inner is not None and issubclass(inner, Wire):
                visit(inner, f"{path}.{key}" if path else key)

    visit(Pod, "")
    return found


def fields_with_rest(struct: type[Any]) -> dict[str, Any]:
    """Return the fields of an object by their names in the API: those that are decoded, and the rest."""
    own = {field.encode_name: field for field in msgspec.structs.fields(struct) if field.encode_name[0] != "("}
    rest = _rest(struct)
    return own if rest is None else {**{field.encode_name: field for field in msgspec.structs.fields(rest)}, **own}


def _rest(struct: type[Any]) -> type[Any] | None:
    from scheduler.api import pod_kinds  # a hundred structs, which most schedulers do without

    for base in struct.__mro__:
        found = getattr(pod_kinds, f"{base.__name__}Rest", None)
        if found is not None:
            return found  # type: ignore[no-any-return]
    return None


def struct_in(type_: Any) -> type[Any] | None:
    """Return the struct in a type such as `tuple[Container, ...] | None`, if there is one."""
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return type_
    return next(filter(None, map(struct_in, get_args(type_))), None)


def _with(struct: type[Any], tree: Tree, path: str) -> type[Any]:
    """Return a subclass of a struct that decodes more."""
    fields = fields_with_rest(struct)
    changed = []
    for key, needed in tree.items():
        at = f"{path}.{key}" if path else key
        field = fields.get(key)
        if field is None:
            near = near_names(key, fields)
            raise ValueError(f"pods have no field {at}" + (f"; did you mean {near[0]!r}?" if near else ""))
        inner: Any = struct_in(field.type)
        if needed and inner is None:
            raise ValueError(f'{at} of pods has no fields; needs = ("{at}",) is all of it')
        is_rest = field.encode_name not in {each.encode_name for each in msgspec.structs.fields(struct)}
        if inner is None:
            type_ = field.type
        elif not needed:
            type_ = _replaced(field.type, inner, _whole(inner))
        elif is_rest and not _is_decoded(inner):
            type_ = _replaced(field.type, inner, _part(inner, needed, at))
        else:
            type_ = _replaced(field.type, inner, _with(inner, needed, at))
        if is_rest or type_ != field.type:
            changed.append(_definition(field, type_))
    return _subclass(struct, changed) if changed else struct


def _part(struct: type, tree: Tree, path: str) -> type[Any]:
    """Return a struct for an object of which nothing else is decoded."""
    keys = [field.encode_name for field in msgspec.structs.fields(struct)]
    bare = _subclass(Wire, [], fields_of(struct.__name__, *keys), name=struct.__name__)
    whole = _with(struct, tree, path)
    wanted = {key: field for key, field in fields_with_rest(whole).items() if key in tree}
    return _subclass(bare, [_definition(field, field.type) for field in wanted.values()], name=struct.__name__)


@cache
def _whole(struct: type) -> type[Any]:
    """Return a struct with everything in it, down to the end."""
    changed = []
    own = {field.encode_name for field in msgspec.structs.fields(struct)}
    for key, field in fields_with_rest(struct).items():
        inner: Any = struct_in(field.type)
        type_ = field.type if inner is None else _replaced(field.type, inner, _whole(inner))
        if key not in own or type_ != field.type:
            changed.append(_definition(field, type_))
    return _subclass(struct, changed) if changed else struct


def _is_decoded(struct: type[Any]) -> bool:
    """Whether scheduling itself reads such objects."""
    return struct.__module__ != "scheduler.api.pod_kinds"


def _definition(field: Any, type_: Any) -> tuple[str, Any, Any]:
    default = field.default
    inner = struct_in(type_)
    if isinstance(default, Wire) and inner is not None:
        default = inner()  # PodSpec() in a Pod
    named = {} if field.encode_name == field.name else {"name": field.encode_name}
    return field.name, type_, msgspec.field(default=default, **named)


def _subclass(
    struct: type[Any],
    fields: Iterable[tuple[str, Any, Any]],
    *bases: type,
    name: str = "",
    members: Mapping[str, Any] = types.MappingProxyType({}),
) -> type[Any]:
    """Define a struct like `struct`, with these fields in addition, or in the place of those of their names."""
    namespace: dict[str, Any] = {"__module__": __name__, "__annotations__": {}, **members}
    for attribute, type_, default in fields:
        namespace["__annotations__"][attribute] = type_
        namespace[attribute] = default
    options = {"frozen": True, "gc": False, "kw_only": True, "rename": "camel", "omit_defaults": True}
    made: type[Any] = types.new_class(
        name or struct.__name__,
        (*bases, struct),
        {**options, "eq": struct.__struct_config__.eq},
        lambda body: body.update(namespace),
    )
    return made


def _replaced(type_: Any, old: type[Any], new: type[Any]) -> Any:
    """Return a type with one struct in the place of another."""
    if type_ is old:
        return new
    origin, inner = get_origin(type_), get_args(type_)
    if not inner:
        return type_
    changed = tuple(_replaced(each, old, new) for each in inner)
    is_union = origin in (Union, types.UnionType)
    return functools.reduce(operator.or_, changed) if is_union else origin[changed]


def _with_annotations(pod: type[Pod], keys: Iterable[str]) -> type[Any]:
    """Return a struct for pods of whose annotations these alone are decoded."""
    fields = fields_with_rest(pod)
    metadata = struct_in(fields["metadata"].type)
    assert metadata is not None
    wanted = {key: f"annotation_{index}" for index, key in enumerate(sorted(keys))}
    some = _subclass(
        SomeAnnotations,
        [(attribute, str | None, msgspec.field(default=None, name=key)) for key, attribute in wanted.items()],
        members={"attributes": wanted},
    )
    annotated = _subclass(metadata, [("annotations", some | None, msgspec.field(default=None))])
    stored, nothing = annotated.__dict__["annotations"].__get__, some()
    annotated.annotations = property(lambda self: stored(self) or nothing)
    field = fields["metadata"]
    return _subclass(pod, [_definition(field, _replaced(field.type, metadata, annotated))])


class SomeAnnotations(Wire, frozen=True):
    """The annotations of a pod that plugins need, as a mapping. Others are not known: asking for one says so."""

    attributes: ClassVar[Mapping[str, str]] = {}

    def __getitem__(self, key: str) -> str:
        value: str | None = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        attribute = self.attributes.get(key)
        if attribute is None:
            path = f"metadata.annotations[{key}]"
            raise NotDecoded(f'{path} of pods is not decoded: add needs = ("{path}",) to the plugin')
        value = getattr(self, attribute)
        return default if value is None else value

    def __contains__(self, key: str) -> bool:
        return self.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key for key in self.attributes if key in self)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def items(self) -> Iterator[tuple[str, str]]:
        return ((key, self[key]) for key in self)

    def keys(self) -> Iterator[str]:
        return iter(self)

    def values(self) -> Iterator[str]:
        return (self[key] for key in self)

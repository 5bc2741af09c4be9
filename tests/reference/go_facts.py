"""The facts of a kube-scheduler version that Loadmaster has to follow, read from its Go sources as text.

Each function takes the sources of one version, and returns what was found: key → text. Read by patterns, not by Go's
compiler: a fact that is computed, or spread over several files, is not seen (`upstream_changes.py` says which).
"""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

Facts: TypeAlias = Mapping[str, str]

API_GROUPS: Final = ("core/v1", "resource/v1", "storage/v1", "policy/v1", "scheduling")
"""The groups of the API that plugins read."""


class Sources(NamedTuple):
    """The modules of one version."""

    version: str
    """Minor version, such as 1.37."""

    kubernetes: Path
    staging: Callable[[str], Path]
    """Name of a staging module → its folder."""

    @property
    def scheduler(self) -> list[Path]:
        """What decides in kube-scheduler: its own files, and those of the libraries that its plugins call."""
        folders = [
            self.kubernetes / "pkg" / "scheduler",
            self.staging("dynamic-resource-allocation"),
            self.staging("component-helpers"),
            self.staging("kube-scheduler"),
        ]
        found = [path for folder in folders for path in sorted(folder.rglob("*.go"))]
        return [path for path in found if not path.name.endswith("_test.go") and "/testing/" not in str(path)]


def gates(sources: Sources) -> Facts:
    """Return the feature gates: default, stage, lock, and what they depend on; marked if the scheduler reads them."""
    text = _read(sources.kubernetes / "pkg" / "features" / "kube_features.go")
    read = set(re.findall(r"features\.(\w+)", "".join(map(_read, sources.scheduler))))
    found = {}
    for name, body in re.findall(r"^\t(\w+): \{\n((?:\t\t\{.*\n)+)\t\},", text, re.MULTILINE):
        specs = re.findall(r'MustParse\("([\d.]+)"\), Default: (\w+), PreRelease: featuregate\.(\w+)(.*)', body)
        known = [each for each in specs if _minor(each[0]) <= _minor(sources.version)]
        if known:
            _, default, stage, rest = known[-1]
            locked = " locked" if "LockToDefault: true" in rest else ""
            mark = " (the scheduler's)" if name in read else ""
            found[name] = f"{'on' if default == 'true' else 'off'} {stage}{locked}{mark}"
    for name, needs in re.findall(r"^\t(\w+): \{([A-Z][\w., ]*)\},", text, re.MULTILINE):
        if name in found:
            found[name] += f", needs {needs}"
    return found


def default_plugins(sources: Sources) -> Facts:
    """Return the default plugins with their weights, each with the one before it."""
    text = _read(sources.kubernetes / "pkg/scheduler/apis/config/v1/default_plugins.go")
    always, _, by_gates = text.partition("func applyFeatureGates")
    listed = re.findall(r"\{Name: names\.(\w+)(?:, Weight: ptr\.To\[int32\]\((\d+)\))?\}", always)
    before, found = "first", dict.fromkeys(re.findall(r"names\.(\w+)", by_gates), "by a feature gate")
    for name, weight in listed:
        found[name] = f"{before}, weight {weight or 'none'}"
        before = f"after {name}"
    return found


def metrics(sources: Sources) -> Facts:
    """Return the metrics: kind, labels, buckets, stability."""
    found: dict[str, str] = {}
    for path in sources.scheduler:
        for kind, options in re.findall(
            r"metrics\.New(\w+)\(\s*&?metrics\.\w+Opts\{(.*?)\n\t*\}[,)]", _read(path), re.S
        ):
            found |= _metric(kind, options, _read(path))
    return found


def _metric(kind: str, options: str, text: str) -> Facts:
    fields = dict(re.findall(r"^\s*(\w+):\s+(.+),$", options, re.MULTILINE))
    name = fields.get("Name", "").strip('"')
    after = text[text.find(options) + len(options) :][:200]
    labels = re.match(r"\s*\},\s*\[\]string\{(.*?)\}", after, re.S)
    return {
        f"{fields.get('Subsystem', '')} {name}".strip(): f"{kind}, labels {labels.group(1) if labels else 'none'}, "
        f"buckets {fields.get('Buckets', 'none')}, {fields.get('StabilityLevel', 'no level')}"
    }


def events(sources: Sources) -> Facts:
    """Return what each plugin registers: (plugin, resource) → actions."""
    found: dict[str, set[str]] = {}
    for path in sources.scheduler:
        if "/plugins/" not in str(path):
            continue
        for resource, actions in re.findall(r"ClusterEvent\{Resource: fwk\.(\w+), ActionType: ([^}]+)\}", _read(path)):
            found.setdefault(f"{path.parent.name} {resource}", set()).update(
                re.findall(r"fwk\.(\w+)|(\w+)", actions)[0]
            )
            found[f"{path.parent.name} {resource}"].update(re.findall(r"fwk\.(\w+)", actions))
    return {key: " | ".join(sorted(filter(None, actions))) for key, actions in found.items()}


def messages(sources: Sources) -> Facts:
    """Return the texts that users may see: string literals of several words, except in logs."""
    found: dict[str, str] = {}
    for path in sources.scheduler:
        place = f"{path.parent.name}/{path.name}"
        for line in _read(path).splitlines():
            if not re.search(r"logger\.|klog\.|^\s*//|Help:", line):
                found |= dict.fromkeys(re.findall(r'"([^"\n]*\w+ \w+[^"\n]*)"', line), place)
    return found


def configuration(sources: Sources) -> Facts:
    """Return the fields of the configuration file with their types, and the lines that set defaults."""
    found: dict[str, str] = {}
    for path in sorted((sources.staging("kube-scheduler") / "config" / "v1").glob("types*.go")):
        found |= dict(_fields(_read(path)))
    for line in _read(sources.kubernetes / "pkg/scheduler/apis/config/v1/defaults.go").splitlines():
        if re.search(r"^\t+obj\.[\w.]+ = |^\t+args\.[\w.]+ = |Weight:|Score:|Utilization:", line):
            found[f"default: {line.strip()}"] = "set"
    return found


def api_fields(sources: Sources) -> Facts:
    """Return the fields of the API's objects with their types."""
    found: dict[str, str] = {}
    for group in API_GROUPS:
        for path in sorted((sources.staging("api") / group).rglob("types.go")):
            prefix = str(path.parent.relative_to(sources.staging("api")))
            found |= {f"{prefix} {key}": kind for key, kind in _fields(_read(path))}
    return found


def names_read(sources: Sources) -> set[str]:
    """Return the names of all fields and methods that the scheduler uses."""
    return set(re.findall(r"\.([A-Z]\w+)\b", "".join(map(_read, sources.scheduler))))


def permissions(sources: Sources) -> Facts:
    """Return what system:kube-scheduler may do: resource → verbs, with and without its feature gates."""
    folder = sources.kubernetes / "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"
    found: dict[str, str] = {}
    for path in sorted(folder.glob("cluster-roles*.yaml")):
        role = re.search(r"name: system:kube-scheduler\n(.*?)(?=\n- apiVersion|\Z)", _read(path), re.S)
        for groups, resources, verbs in re.findall(_RULE, role.group(1) if role else ""):
            of = ", ".join(_items(groups)).replace("''", "core")
            found |= {f"{path.stem}: {of}/{each}": ", ".join(_items(verbs)) for each in _items(resources)}
    return found


KINDS: Final[Mapping[str, Callable[[Sources], Facts]]] = {
    "feature gate": gates,
    "default plugin": default_plugins,
    "metric": metrics,
    "event": events,
    "message": messages,
    "configuration": configuration,
    "API field": api_fields,
    "permission": permissions,
}

_RULE: Final = re.compile(
    r"- apiGroups:\n((?:    - .*\n)+)    resources:\n((?:    - .*\n)+)    verbs:\n((?:    - .*\n?)+)"
)


def _items(text: str) -> list[str]:
    return [line.strip().removeprefix("- ").strip('"') for line in text.splitlines()]


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield each field of each struct with its type."""
    for struct, body in re.findall(r"^type (\w+) struct \{\n(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        for name, kind in re.findall(r"^\t(\w+)\s+(\S+)\s+`json", body, re.MULTILINE):
            yield f"{struct}.{name}", kind


def _minor(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


_texts: dict[Path, str] = {}


def _read(path: Path) -> str:
    if path not in _texts:
        _texts[path] = path.read_text(encoding="utf-8")
    return _texts[path]

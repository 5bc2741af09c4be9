"""The configurations in kube-scheduler's own tests, as the texts of configuration files.

Those in test files are literals with the kind of a configuration. Those that tests build as Go values are taken where
kube-scheduler validates them or gives them defaults: its tests run in a copy of the module in which these functions
write their input to a file first (`overlay/`).
"""

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.conformance.links import link_all
from tests.conformance.oracle import GO_MOD, SOURCES
from tests.controlplane.build import cache_directory
from tests.controlplane.toolchain import BuildError, find_go

KUBERNETES: Final = "k8s.io/kubernetes"
CONFIG: Final = "pkg/scheduler/apis/config"
TEXTS_BELOW: Final = (CONFIG, "cmd/kube-scheduler", "test/integration/scheduler", "test/integration/scheduler_perf")
OVERLAY: Final = Path(__file__).parent / "overlay"
OVERLAID: Final = {"validation": ("validation.go", "validation_pluginargs.go"), "v1": ("defaults.go",)}
"""Package below `CONFIG` → its files with functions that take configurations or arguments."""

_LITERAL: Final = re.compile(r"`([^`]*)`")
_FUNCTION: Final = re.compile(
    r"^func (?:Validate|SetDefaults_)(KubeSchedulerConfiguration|\w+Args)\((?:path \*field\.Path, )?(\w+) \*.*\{$", re.M
)


def collect() -> dict[str, str]:
    """Name → text of each different configuration. Needs Go."""
    go = find_go(cache_directory())
    module = Path(_output([str(go), "list", "-m", "-f", "{{.Dir}}", KUBERNETES]).strip())
    found = [*_in_files(module), *_in_tests(go, module)]
    texts: dict[str, str] = {}
    for place, text in found:
        if text not in texts.values():
            number = sum(name.startswith(f"{place}#") for name in texts)
            texts[f"{place}#{number + 1}"] = text
    return texts


def _in_files(module: Path) -> Iterator[tuple[str, str]]:
    for root in TEXTS_BELOW:
        for path in sorted((module / root).rglob("*")):
            if path.suffix not in (".go", ".yaml", ".yml", ".json"):
                continue
            content = path.read_text()
            literals = _LITERAL.findall(content) if path.suffix == ".go" else [content]
            for text in literals:
                if "KubeSchedulerConfiguration" in text:
                    yield str(path.relative_to(module)), text.replace("%s", "/kubeconfig")


def _in_tests(go: Path, module: Path) -> Iterator[tuple[str, str]]:
    for package, files in OVERLAID.items():
        with tempfile.TemporaryDirectory() as directory:
            scratch = Path(directory)
            recorded, copy = scratch / "recorded.jsonl", scratch / "kubernetes"
            link_all(module, copy, _recording_files(module, package, files))
            for path in (GO_MOD, GO_MOD.with_suffix(".sum")):
                (scratch / path.name).write_text(path.read_text())
            replace = f"-replace={KUBERNETES}={copy}"
            _output([str(go), "mod", "edit", replace, str(scratch / "go.mod")])
            where = f"-modfile={scratch / 'go.mod'}"
            _output(
                [str(go), "test", "-count=1", where, f"{KUBERNETES}/{CONFIG}/{package}"],
                {"RECORD_CONFIGURATIONS": str(recorded)},
            )
            for line in recorded.read_text().splitlines():
                yield f"{CONFIG}/{package}", json.loads(line)


def _recording_files(module: Path, package: str, files: tuple[str, ...]) -> dict[str, str]:
    """Name below the module → text, of the files of a package that write down their input."""
    below = f"{CONFIG}/{package}"
    texts = {f"{below}/{name}": _FUNCTION.sub(_recording, (module / below / name).read_text()) for name in files}
    return texts | {f"{below}/record_input.go": (OVERLAY / f"{package}.go").read_text()}


def _recording(function: re.Match[str]) -> str:
    kind, argument = function.groups()
    return f'{function[0]}\n\trecordInput({argument}, "{kind.removesuffix("Args")}")'


def _output(command: list[str], more: dict[str, str] | None = None) -> str:
    environment = os.environ | {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "-mod=mod"}
    result = subprocess.run(
        command, cwd=SOURCES, env=environment | (more or {}), capture_output=True, text=True, check=False
    )
    if result.returncode != 0:
        raise BuildError(f"{' '.join(command)} failed:\n{result.stdout.strip()}\n{result.stderr.strip()}")
    return result.stdout

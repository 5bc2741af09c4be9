"""What edits of kube-scheduler's files are, and how they are made.

An edit whose text is not found exactly once fails, so that a new version cannot lose one silently.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.toolchain import BuildError

SCHEDULER: Final = "pkg/scheduler"
PLUGINS: Final = f"{SCHEDULER}/framework/plugins"
KUBERNETES: Final = "k8s.io/kubernetes"
DEVICES: Final = "k8s.io/dynamic-resource-allocation"

Edits = Mapping[str, Mapping[str, Mapping[str, str]]]
"""Module → file → what is there, and what replaces it."""


def edited_files(module: Path, edits: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """Name below a module's folder → text after the edits. Raises BuildError if something is not there to edit."""
    return {name: edit((module / name).read_text(), each.items(), name) for name, each in edits.items()}


def edit(text: str, edits: Iterable[tuple[str, str]], name: str) -> str:
    """The text with each edit made. Raises BuildError for one whose place is not found exactly once."""
    for before, after in edits:
        if text.count(before) != 1:
            raise BuildError(f"{name} has {text.count(before)} times what is to be edited once: {before.strip()!r}")
        text = text.replace(before, after)
    return text


def both(mended: Edits, by_name: Mapping[str, Mapping[str, str]]) -> Edits:
    """All edits of a build for pod groups; one file may have some of each."""
    files = mended[KUBERNETES]
    merged = {name: {**files.get(name, {}), **by_name.get(name, {})} for name in files.keys() | by_name.keys()}
    return {**mended, KUBERNETES: merged}

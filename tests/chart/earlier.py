"""Releases that came before: their charts are in `releases`, everything else is at their commits."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

DIRECTORY: Final = Path(__file__).with_name("releases")


@dataclass(frozen=True, slots=True)
class Release:
    """One of which the chart is kept."""

    version: str
    commit: str

    @property
    def chart(self) -> Path:
        return DIRECTORY / f"loadmaster-{self.version}.tgz"


def kept() -> list[Release]:
    """All of them, the oldest first."""
    commits: dict[str, str] = yaml.safe_load((DIRECTORY / "commits.yaml").read_text())
    return [Release(version, commit) for version, commit in commits.items()]


def release_before() -> Release:
    """The one from which users upgrade to what is here."""
    return kept()[-1]

"""The Helm chart under test: the real helm, strict YAML, and the plain manifest that is rendered from the chart."""

from collections.abc import Iterable
from typing import Any

from tests.chart.helm import CHART, Helm, HelmError
from tests.chart.strict_yaml import DuplicateKeyError, load_documents

__all__ = ["CHART", "DuplicateKeyError", "Helm", "HelmError", "load_documents", "schedulers_own"]


def schedulers_own(documents: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the accounts and the roles of those who ask it for explanations, traces and its state."""
    askers = tuple(f"{mark}{what}" for mark in "-:" for what in ("explain", "record", "doctor"))
    return [each for each in documents if not each["metadata"]["name"].endswith(askers)]

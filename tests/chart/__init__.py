"""The Helm chart under test: the real helm, strict YAML, and the plain manifest that is rendered from the chart."""

from tests.chart.helm import CHART, Helm, HelmError
from tests.chart.strict_yaml import DuplicateKeyError, load_documents

__all__ = ["CHART", "DuplicateKeyError", "Helm", "HelmError", "load_documents"]

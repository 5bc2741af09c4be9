"""Prometheus' own tool on the rules that are shipped: `promtool check rules`, `promtool test rules`."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.chart.helm import CHART

RULES: Final = CHART / "monitoring" / "rules.yaml"
DASHBOARD: Final = CHART / "monitoring" / "dashboard.json"
MISSING: Final = "there is no promtool: sudo make kind-deps installs Debian's package prometheus"

Series = Mapping[str, str]
"""A series, as PromQL writes it, to its values a minute apart, as promtool's tests write them."""


@dataclass(frozen=True)
class Moment:
    """What is expected at a minute: the names of the alerts, one for each of their series."""

    minute: int
    firing: Sequence[str] = ()
    pending: Sequence[str] | None = ()
    """None: any may be."""


def is_there() -> bool:
    return shutil.which("promtool") is not None


def check(rules: Path = RULES) -> str:
    """What `promtool check rules` says; raises AssertionError if it finds a problem."""
    return _run("check", "rules", str(rules))


def play(directory: Path, scenes: Mapping[str, tuple[Series, Sequence[Moment]]]) -> None:
    """Let the rules run over series, and look at the alerts. Raises AssertionError with what promtool says.

    All scenes are one run of promtool, which names those that fail.
    """
    tests = [
        {
            "name": name,
            "interval": "1m",
            "input_series": [{"series": each, "values": values} for each, values in series.items()],
            "promql_expr_test": [test for moment in moments for test in _tests(moment)],
        }
        for name, (series, moments) in scenes.items()
    ]
    file = directory / "scenes.yaml"
    file.write_text(json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": tests}))
    _run("test", "rules", str(file))


def _tests(moment: Moment) -> list[dict[str, Any]]:
    """All alerts at a moment, by name: one that is not expected is a failure as well."""
    return [
        {
            "expr": f'count by (alertname) (ALERTS{{alertstate="{state}"}})',
            "eval_time": f"{moment.minute}m",
            "exp_samples": [
                {"labels": f'{{alertname="{name}"}}', "value": names.count(name)} for name in sorted(set(names))
            ],
        }
        for state, names in (("firing", moment.firing), ("pending", moment.pending))
        if names is not None
    ]


def _run(*arguments: str) -> str:
    result = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=300, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout

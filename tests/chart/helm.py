"""The real helm on the chart of this repository."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tests.controlplane.build import find_binaries

CHART: Final = Path(__file__).parents[2] / "charts" / "loadmaster"
TIMEOUT: Final = 60.0
"""Seconds for one command of helm if the caller gives none."""

Values = Mapping[str, Any]


class HelmError(Exception):
    """helm ended with a code other than 0, or warned. The text is what it wrote to standard error."""


class Helm:
    """Runs helm with a home of its own, so that nothing of the user's plays a part."""

    def __init__(self, home: Path, kubeconfig: Path | None = None) -> None:
        """`kubeconfig`: of the cluster to install in; rendering needs none. Raises BuildError."""
        self._binary = find_binaries(["helm"])["helm"]
        # Without HELM_NAMESPACE, HELM_KUBECONTEXT and so on of the user's.
        self._env = {key: value for key, value in os.environ.items() if not key.startswith("HELM_")}
        self._env |= {f"HELM_{kind}_HOME": str(home / kind.lower()) for kind in ("CACHE", "CONFIG", "DATA")}
        self._env["KUBECONFIG"] = str(kubeconfig or os.devnull)
        self._rendered: dict[tuple[str, ...], str] = {}

    def run(self, *arguments: str, values: Values | None = None, timeout: float = TIMEOUT) -> str:
        """Run one command of at most `timeout` seconds and return its standard output.

        `values` are given as a file is, so that they keep their types. Raises HelmError if it fails, and if it
        succeeds but has something to say on standard error.
        """
        given = [] if values is None else ["--values=-"]
        result = subprocess.run(
            [str(self._binary), *arguments, *given],
            input=json.dumps(values or {}),  # JSON is YAML
            env=self._env,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if result.returncode != 0 or result.stderr:
            raise HelmError(result.stderr.strip() or result.stdout.strip())
        return result.stdout

    def render(
        self,
        values: Values | None = None,
        *options: str,
        release: str = "loadmaster",
        namespace: str = "kube-system",
        chart: Path = CHART,
    ) -> str:
        """What `helm template` writes. Raises HelmError.

        This repository's chart is rendered once for the same values.
        """
        arguments = ("template", release, str(chart), f"--namespace={namespace}", *options)
        asked = (*arguments, json.dumps(values or {}))
        if chart != CHART or asked not in self._rendered:
            self._rendered[asked] = self.run(*arguments, values=values or {})
        return self._rendered[asked]

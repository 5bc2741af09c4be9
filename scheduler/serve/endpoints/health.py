"""Health in kube-scheduler's format: `/healthz`, `/livez`, `/readyz`.

A health path answers `ok`, or 500 with the list of its checks, as k8s.io/apiserver/pkg/server/healthz writes it:

    [+]ping ok
    [-]sched-handler-sync failed: reason withheld
    readyz check failed

`?verbose` shows the list in any case, `?exclude=NAME` leaves a check out, `/readyz/NAME` asks for one.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TypeAlias

from scheduler.process.metrics import Metrics

log = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], bool]
"""Whether one part is healthy. Must be quick."""

Notes: TypeAlias = Callable[[], Iterable[str]]


class Health:
    """The checks behind one path."""

    def __init__(self, name: str, checks: Mapping[str, Check], metrics: Metrics, notes: Notes = tuple) -> None:
        """`name`: the path without its slash. The results of all checks are counted in `metrics`.

        `notes`: lines that are shown with the checks, and decide nothing.
        """
        self._name = name
        self._notes = notes
        self._checks = {"ping": _ping, **checks}
        self._metrics = metrics

    def all(self, excluded: Collection[str], *, verbose: bool) -> tuple[int, str]:
        """Status and text."""
        results = {name: _passes(name, check) for name, check in self._checks.items() if name not in excluded}
        for name, ok in results.items():
            self._metrics.healthcheck.labels(name, self._name).set(ok)
            self._metrics.healthchecks.labels(name, self._name, "success" if ok else "error").inc()
        passed = all(results.values())
        lines = [f"[+]{name} ok" if ok else f"[-]{name} failed: reason withheld" for name, ok in results.items()]
        lines += (f"[!]{note}" for note in self._notes())
        if not passed:
            return 500, "\n".join([*lines, f"{self._name} check failed\n"])
        if verbose:
            return 200, "\n".join([*lines, f"{self._name} check passed\n"])
        return 200, "ok"

    def one(self, name: str) -> tuple[int, str] | None:
        """Status and text of one check; None if there is none of that name."""
        check = self._checks.get(name)
        if check is None:
            return None
        if _passes(name, check):
            return 200, "ok"
        return 500, f"internal server error: {name} failed\n"


def _ping() -> bool:
    return True


def _passes(name: str, check: Check) -> bool:
    try:
        return check()
    except Exception:
        log.exception("A health check failed to run", extra={"check": name})
        return False

"""Loadmaster as it is shipped, with two additions and shorter waits.

It has a plugin that watches a custom resource (docs/examples/team_budget.py), and SIGUSR1 logs which tasks and threads
there are. What is shorter are the times after which it gives a silent watch up and tries again what has failed: minutes
become seconds, so that a round of ten seconds sees them pass.
"""

import asyncio
import gc
import logging
import signal
import sys
import threading
from functools import partial
from typing import Any, Final

from team_budget import TeamBudget

from scheduler.__main__ import main
from scheduler.assembly import cluster
from scheduler.kube.http.retries import RetryPolicy
from scheduler.kube.informers import further_watches, kopf_settings, watch
from scheduler.kube.informers.comparison_schedule import ComparisonSchedule
from scheduler.kube.informers.watch import Watch

FROZEN_SECONDS: Final = 5.0
"""A silent watch is opened again after this time instead of 70 s."""

ABSENT_SECONDS: Final = 1.0
"""A resource that is not served is asked for as often, instead of every 5 s."""

QUICK: Final = RetryPolicy(first=0.1, limit=1.0)
"""Instead of waits of up to a minute."""

log = logging.getLogger("scheduler.tests.chaos")


def _log_tasks() -> None:
    gc.collect()  # a task whose exception nobody has asked for says so when it is collected
    tasks = sorted(f"{task.get_name()} {getattr(task.get_coro(), '__qualname__', '')}" for task in asyncio.all_tasks())
    threads = sorted(thread.name for thread in threading.enumerate())
    log.warning("Tasks", extra={"tasks": tasks, "threads": threads})


if __name__ == "__main__":
    parts: Any = cluster
    signal.signal(signal.SIGUSR1, lambda *_: asyncio.get_running_loop().call_soon(_log_tasks))
    opening: Any
    for opening in (cluster, further_watches):
        opening.Watch = partial(Watch, frozen_seconds=FROZEN_SECONDS, absent_seconds=ABSENT_SECONDS)
    parts.ComparisonSchedule = partial(ComparisonSchedule, QUICK)
    waiting: Any
    for waiting in (kopf_settings, watch):
        waiting.RETRIES = QUICK
    sys.exit(main(plugins={"TeamBudget": TeamBudget}))

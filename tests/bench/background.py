"""What goes on beside the other operations of a workload: churn, and pods deleted one after the other."""

import threading
import time
from collections.abc import Callable, Sequence

from tests.bench.api import Api, Object, create, kind_of
from tests.bench.board import PodRecord
from tests.bench.objects import Names, for_scheduler, make
from tests.bench.operations import Churn
from tests.bench.wire import Request, WireError

Step = Callable[[], bool]
"""One beat of something that goes on; False when there is no more to do."""


class Threads:
    """A thread for each; `stop` ends all of them. An interval in which the step did not get done is left out."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.error: Exception | None = None
        """Why one of them ended."""

    def every(self, seconds: float, step: Step) -> None:
        """Call `step` in each interval until it returns False."""
        thread = threading.Thread(target=self._run, args=(seconds, step), daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seconds: float, step: Step) -> None:
        due = time.monotonic() + seconds
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            try:
                if not step():
                    return
            except WireError as error:
                self.error = error
                return
            due = max(due + seconds, time.monotonic())


class Churning:
    """Objects that come, and in the mode `recreate` go (runChurnOp in executor.go)."""

    def __init__(self, api: Api, operation: Churn, namespace: str, scheduler_name: str, names: Names) -> None:
        self._api = api
        self._operation = operation
        self._namespace = namespace
        self._scheduler_name = scheduler_name
        self._names = names
        self._beats = 0
        self._alive: list[list[str]] = [[""] * max(1, operation.number) for _ in operation.template_paths]

    def beat(self) -> bool:
        """One interval: an object of each template."""
        if self._operation.mode == "create" and 0 < self._operation.number <= self._beats:
            return False
        for path, alive in zip(self._operation.template_paths, self._alive, strict=True):
            obj = for_scheduler(make(path, {}), self._scheduler_name)
            if self._operation.mode == "create":
                self._create(obj)
                continue
            place = self._beats % len(alive)
            if alive[place]:
                self._delete(obj, alive[place])
                alive[place] = ""
            else:
                alive[place] = self._create(obj)
        self._beats += 1
        return True

    def _create(self, obj: Object) -> str:
        """The new object's name, or an empty string: as in scheduler_perf, an error is no reason to stop."""
        name = self._names.give(obj)
        return name if self._api.send(create(self._api, obj, self._namespace)).ok else ""

    def _delete(self, obj: Object, name: str) -> None:
        path, what = self._api.path(kind_of(obj), self._namespace, name)
        self._api.send(Request("DELETE", path, what))


class Deleting:
    """Pods that are deleted one by one, with the grace period that they ask for (runDeletePodsOp)."""

    def __init__(self, api: Api, pods: Sequence[PodRecord]) -> None:
        self._api = api
        self._left = list(pods)[::-1]

    def beat(self) -> bool:
        """Delete the next one."""
        if not self._left:
            return False
        pod = self._left.pop()
        path, what = self._api.path("v1/Pod", pod.namespace, pod.name)
        self._api.send(Request("DELETE", path, what))
        return bool(self._left)

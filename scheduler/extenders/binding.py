"""Bindings that an extender makes: it writes to the API server, and only the API server knows whether it did.

    ask ──yes──► bound: the watch confirms it ──not after 2, 10 and 30 s──► READ ──not bound──► taken back, tried again
     └───no, or no answer──► READ ──on our node──► bound
                              └─────not bound─────► the default way if the extender is ignorable, else failed

A slow extender may bind the pod after it went back to the queue; the watch shows that, as it shows bindings of other
schedulers, and the API server binds a pod once.

Rule: extendersBinding in pkg/scheduler/schedule_one.go at v1.36.3.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from scheduler.api.pods.pod import Pod
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.extenders.extender import CallFailed, Extender
from scheduler.framework.errors import BindRejected, ClusterError
from scheduler.framework.extenders import ExtenderError
from scheduler.process.tasks import Tasks
from scheduler.state.cache import Cache

CONFIRM_SECONDS: Final = (2.0, 8.0, 20.0)
"""Times after a reported binding when we check whether the watch has shown it."""

READ_AGAIN_SECONDS: Final = 2.0
"""Between two reads of a binding in doubt."""

LATE_SECONDS: Final = 900.0
"""Limit for settling a binding while the API server does not answer."""

_logger = logging.getLogger(__name__)


class ExtenderBinding:
    """The bindings of the extender that binds, if it is interested in the pod."""

    def __init__(
        self,
        pods: PodSource,
        cache: Cache,
        check: Callable[[str, str], None],
        not_bound: Callable[[Pod], None],
        tasks: Tasks,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """`check` raises BindRejected if a pod (by UID) no longer fits a node. `not_bound` is called for a pod that was
        reported as bound but is not: its resources are free. There are no extenders before `use`.
        """
        self._extenders = Extenders(())
        self._asked: Counter[Extender] = Counter()
        """Extender → number of bindings under way; it may have been replaced meanwhile."""
        self._pods = pods
        self._cache = cache
        self._check = check
        self._not_bound = not_bound
        self._jobs = tasks.jobs("confirming", LATE_SECONDS, cancels_late=False)
        self._sleep = sleep

    def is_calling(self, extender: Extender) -> bool:
        """Return whether a binding is under way at this extender."""
        return self._asked[extender] > 0

    def use(self, extenders: Extenders) -> None:
        """Use these extenders from the next binding on."""
        self._extenders = extenders

    async def bind(self, pod: Pod, node_name: str) -> bool:
        """Return True once the extender has bound the pod; False if no extender binds it.

        Raises ExtenderError, BindRejected if the pod is not bound.
        """
        extender = self._extenders.binder_of(pod)
        if extender is None:
            return False
        try:
            await self._ask(extender, pod, node_name)
        except ExtenderError as error:
            was_sent = not isinstance(error, CallFailed) or error.was_sent
            if was_sent and await self._is_bound(pod, node_name):
                fields = {"pod": str(pod), "node": node_name, "extender": extender.name, "err": str(error)}
                _logger.warning("An extender has bound a pod, though it did not say so", extra=fields)
                return True
            if not extender.is_ignorable:
                raise
            fields = {"pod": str(pod), "extender": extender.name, "err": str(error)}
            _logger.info("An extender is left out in binding, as it failed and is ignorable", extra=fields)
            return False
        self._jobs.start(f"confirm {pod}", self._confirm(pod, node_name, extender.name))
        return True

    async def _ask(self, extender: Extender, pod: Pod, node_name: str) -> None:
        self._asked[extender] += 1
        try:
            await extender.bind(pod, node_name, partial(self._check, pod.uid, node_name))
        finally:
            self._asked[extender] -= 1
            if not self._asked[extender]:
                del self._asked[extender]

    async def _is_bound(self, pod: Pod, node_name: str) -> bool:
        """Read whether the pod is bound to our node. Raises BindRejected if it is on another one, or gone."""
        while True:
            try:
                found = await self._pods.read(pod)
                break
            except ClusterError as error:
                fields = {"pod": str(pod), "node": node_name, "err": str(error)}
                _logger.warning("What became of an extender's binding cannot be read yet", extra=fields)
            await self._sleep(READ_AGAIN_SECONDS)
        if found is None:
            raise BindRejected("the pod is gone")
        if found.node_name not in ("", node_name):
            raise BindRejected(f"the pod is bound to node {found.node_name!r}")
        return bool(found.node_name)

    async def _confirm(self, pod: Pod, node_name: str, extender: str) -> None:
        """Undo the assumption if the extender has not bound the pod."""
        for seconds in CONFIRM_SECONDS:
            await self._sleep(seconds)
            if not self._cache.is_assumed(pod.uid):
                return
        try:
            if await self._is_bound(pod, node_name):
                return  # the watch lags
        except BindRejected as error:
            _logger.warning("A pod is not where an extender said", extra={"pod": str(pod), "err": str(error)})
            return  # the watch reports the rest
        if self._cache.is_assumed(pod.uid) and self._cache.forget(pod):
            fields = {"pod": str(pod), "node": node_name, "extender": extender}
            _logger.error(
                "An extender said that it has bound a pod, and it is not bound; it is tried again", extra=fields
            )
            self._not_bound(pod)

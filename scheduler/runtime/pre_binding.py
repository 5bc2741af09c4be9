"""Pods at their PreBind plugins: until the first Bind plugin is asked, their binding can be cancelled.

Rule: pkg/scheduler/framework/runtime/pods_in_prebind_map.go at v1.36.3.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from scheduler.framework.awaited import child
from scheduler.framework.errors import SchedulerError

T = TypeVar("T")


class _PreBinding:
    __slots__ = ("cause", "task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.task = task
        self.cause: str | None = None


class PodsInPreBind:
    """All pods at their PreBind plugins, by UID."""

    def __init__(self) -> None:
        self._pods: dict[str, _PreBinding] = {}

    async def run(self, uid: str, work: Coroutine[Any, Any, T]) -> T:
        """Return what the PreBind plugins of a pod answer. Raises SchedulerError with its message if `cancel` comes."""
        task = child(f"pre-bind {uid}", work)
        pre_binding = self._pods[uid] = _PreBinding(task)
        try:
            answer = await task
        except asyncio.CancelledError:
            if pre_binding.cause is None:
                raise
        finally:
            del self._pods[uid]
        if pre_binding.cause is not None:  # also of a plugin that would not stop
            raise SchedulerError(pre_binding.cause)
        return answer

    def cancel(self, uid: str, message: str) -> bool:
        """Cancel a pod's binding, for the reason `message`; say whether that is still possible."""
        pre_binding = self._pods.get(uid)
        if pre_binding is None:
            return False
        if pre_binding.cause is None:
            pre_binding.cause = message
            pre_binding.task.cancel()
        return True

"""Bind pods through the API server."""

from dataclasses import dataclass
from typing import ClassVar

from scheduler import framework as fw


@dataclass
class DefaultBinder(fw.BindPlugin):
    """Bind: create the pod's binding. The framework handles what the binder raises.

    Rule: defaultbinder/default_binder.go at v1.36.3.
    """

    name: ClassVar[str] = "DefaultBinder"

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle

    async def bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Return once the pod is bound. Raises what the handle's binder raises, such as BindRejected."""
        await self.handle.binder.bind(pod, node_name)
        return None

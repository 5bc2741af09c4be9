"""All writers of an engine that is to write nothing."""

from collections.abc import Callable

from scheduler.api.pod import Pod


class Silence:
    """Implements BindingWriter, EventRecorder, StatusWriter and Evictor by doing nothing."""

    async def bind(self, pod: Pod, node_name: str, check: Callable[[], None]) -> str:
        return ""

    def event(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None: ...

    def unschedulable(self, pod: Pod, reason: str, message: str, nominated_node_name: str | None) -> None: ...

    def nominate(self, pod: Pod, node_name: str) -> None: ...

    def forget(self, pod: Pod) -> None: ...

    async def evict(self, victim: Pod, preemptor: Pod, message: str) -> bool:
        """Say that it is done: whether and when a victim goes, others say."""
        return True

    def clear_nomination(self, pod: Pod) -> None: ...

"""Extenders as the loop sees them: attempts that ask them, and bindings that one of them makes."""

from collections.abc import Callable

from scheduler.api.pods.pod import Pod
from scheduler.cycle.core import Core
from scheduler.extenders.attempts import ExtendedAttempts
from scheduler.extenders.binding import ExtenderBinding
from scheduler.extenders.chain import Extenders, PodSource
from scheduler.extenders.decision import ExtendedAlgorithm
from scheduler.extenders.extender import Extender


class AskedExtenders:
    """Implements cycle.wings.ExtenderWing. There are no extenders before `use`."""

    def __init__(
        self, core: Core, pods: PodSource, check: Callable[[str, str], None], not_bound: Callable[[Pod], None]
    ) -> None:
        """`check` and `not_bound` as of `ExtenderBinding`."""
        algorithm = ExtendedAlgorithm(core.algorithm, core.cache.table, core.pauses.ready, core.metrics)
        self.attempts = attempts = ExtendedAttempts(core, algorithm, pods)
        self._binding = binding = ExtenderBinding(pods, core.cache, check, not_bound, core.tasks)
        self.has_extenders = False
        self.has_binder = False
        self.bind = binding.bind
        self.finish = attempts.finish
        self.is_used = attempts.is_used
        self.take = attempts.take

    def use(self, extenders: Extenders, max_in_lane: int) -> None:
        """Call these extenders from the next decision on. `max_in_lane`: attempts of one lane."""
        self.attempts.use(extenders, max_in_lane)
        self._binding.use(extenders)
        self.has_extenders = bool(extenders)
        self.has_binder = any(each.is_binder for each in extenders)

    def is_calling(self, extender: Extender) -> bool:
        return self.attempts.is_calling(extender) or self._binding.is_calling(extender)

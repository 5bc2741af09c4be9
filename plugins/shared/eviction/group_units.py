"""Checks whether a group of pods fits without some units of others, within a limit of decisions."""

from collections.abc import Callable, Sequence

from scheduler import framework as fw
from scheduler.framework.preemption.victims import Unit, pods_of


class WithoutUnits:
    """Implements framework.victims.WithoutSome on all nodes."""

    def __init__(self, what_if: fw.GroupWhatIf, max_decisions: int, fits: Callable[[], bool] | None = None) -> None:
        """`max_decisions`: how many pods may be decided about, 0.15 ms each: meanwhile no others are.

        `fits`: one of the questions of `what_if`; its refusal if None is given.
        """
        self._what_if = what_if
        self._fits = fits or (lambda: what_if.refusal() is None)
        self._decisions_left = max_decisions
        self.is_too_long = False
        """Whether it took too long: then nothing fits any more."""

    def put_back(self, some: Sequence[Unit]) -> None:
        self._what_if.put_back(pods_of(some))

    def remove(self, some: Sequence[Unit]) -> None:
        self._what_if.remove(pods_of(some))

    def fits(self) -> bool:
        self._decisions_left -= self._what_if.decisions
        self.is_too_long = self._decisions_left < 0
        return not self.is_too_long and self._fits()

    def ask(self, fits: Callable[[], bool]) -> None:
        """Go on with another question."""
        self._fits = fits

"""The pods that give quota back to a pod, or a group, by Kueue's policies, which declared shares have, too."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from scheduler.api.pods.importance import created
from scheduler.api.pods.pod import Pod
from scheduler.framework.preemption.victims import pods_of
from scheduler.framework.shares import DisruptionBudgets, ReclaimVictims
from scheduler.quota.policies import Preemption
from scheduler.quota.reclaim.classical import Classical, Source, sources_of
from scheduler.quota.reclaim.fair import Fair
from scheduler.quota.reclaim.fair_targets import Reckon
from scheduler.quota.reclaim.minimal import Fits, minimal_victims
from scheduler.quota.reclaim.pods import PodReclaim, QuotaRequest
from scheduler.quota.reclaim.running import Preemptor, QuotaUnit, Running, RunningUnits, SpareOf
from scheduler.quota.tree import ShareTree


class PolicyReclaim(PodReclaim):
    """Implements framework.shares.ShareReclaim."""

    def __init__(
        self,
        request: QuotaRequest,
        preemption: Preemption,
        running: Callable[[Callable[[Pod], QuotaUnit | None], SpareOf], Running],
        reckon: Reckon | None,
    ) -> None:
        """`preemption`: whom pods of the share may evict. `running` makes RunningPods of all that the ledger's shares
        have. With `reckon`, dominant resource shares decide.
        """
        super().__init__(request)
        ledger, share, asked = request.ledger, request.share, self._asked
        pod = asked.need.pod
        self._preemption = preemption
        self._running = running
        self._reckon = reckon
        with self._seen():
            amounts = ledger.wanted(share, asked)
            self._preemptor = Preemptor(share=share, request=amounts, priority=pod.priority, queued_at=created(pod))
            known = self._contesting()
        self._known: tuple[Preemptor, Mapping[str, Source]] | None = known
        self._giving = {name: source.policy for name, source in known[1].items()}

    @contextmanager
    def without(self, pods: Iterable[Pod]) -> Iterator[None]:
        leaving = tuple(pods)
        if not leaving:  # what is known stays so
            yield
            return
        with super().without(leaving):
            self._known = None
            try:
                yield
            finally:
                self._known = None

    def fewest(
        self,
        pods: Iterable[Pod] | None,
        budgets: Callable[[], DisruptionBudgets],
        fits: Callable[[Sequence[Pod]], bool],
    ) -> ReclaimVictims:
        running = self._running(self._whole, self._spare_of) if pods is None else RunningUnits(self._wholes(pods))
        with self._seen():
            preemptor, sources = self._known = self._known or self._contesting()
            found = self._found(preemptor, sources, running, lambda gone: fits(pods_of(gone)), budgets)
        return self._victims(found, self._violating(found, budgets))

    def _found(
        self,
        preemptor: Preemptor,
        sources: Mapping[str, Source],
        running: Running,
        fits: Fits,
        budgets: Callable[[], DisruptionBudgets],
    ) -> list[QuotaUnit]:
        tree, preemption = self._tree, self._preemption
        if self._reckon is not None:
            fair = Fair(tree, running, preemptor, preemption, self._reckon, self._ledger.expenses)
            victims = _fewest(tree, preemptor, fair.candidates(budgets), fits, borrows=True)
            return victims if fair.may_all_go(victims) else []
        classical = Classical(tree, running, preemptor, preemption, sources)
        for borrows in classical.plans():
            if victims := _fewest(
                tree, preemptor, classical.candidates(budgets, borrows=borrows), fits, borrows=borrows
            ):
                return victims
        return []

    def _contesting(self) -> tuple[Preemptor, Mapping[str, Source]]:
        """Return the preemptor and the shares that may give, as the tree is now."""
        preemptor = _contesting(self._tree, self._preemptor)
        return preemptor, sources_of(self._tree, preemptor, self._preemption)


def _fewest(
    tree: ShareTree, preemptor: Preemptor, candidates: Generator[QuotaUnit, None, None], fits: Fits, *, borrows: bool
) -> list[QuotaUnit]:
    def quota_fits() -> bool:
        share, request = preemptor.share, preemptor.request
        return tree.fits(share, request) and (borrows or tree.guarantees(share, request))

    return minimal_victims(tree, candidates, quota_fits, fits)


def _contesting(tree: ShareTree, preemptor: Preemptor) -> Preemptor:
    asked = {resource: amount for resource, amount in preemptor.request.items() if amount > 0}
    short = [each for each, amount in asked.items() if amount > tree.available(preemptor.share, each)]
    return msgspec.structs.replace(preemptor, contested=frozenset(short or asked))

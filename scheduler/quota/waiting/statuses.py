"""`status.used` of the elastic quotas, kept up to date while this replica leads.

    usage or quota changes ─► marked ─► a second later: is it as the status says? ─► patched if not

Only a change of ours is a reason to write: scheduler-plugins' controller, which counts running pods alone, may work at
the same time, and the two do not answer each other.

Rule for the resources that are shown: pkg/controllers/elasticquota_controller.go of scheduler-plugins.
"""

from collections.abc import Callable, Mapping
from typing import Any

from scheduler.api.pods.requests import CPU, EPHEMERAL_STORAGE, MEMORY, PODS, allocatable_of
from scheduler.api.quota.elastic_quotas import ElasticQuota
from scheduler.api.wording.spelling import quantity
from scheduler.cycle.status_writer import StatusWriter, Target
from scheduler.framework.events import ELASTIC_QUOTA
from scheduler.framework.handle import ApiWriter
from scheduler.process.tasks import Tasks
from scheduler.quota.adapters import AdaptedShares
from scheduler.quota.apis.elastic_quotas import MAX_RESOURCES, ElasticQuotas
from scheduler.quota.ledger import Ledger
from scheduler.quota.share_refs import ShareRef
from scheduler.state.objects import ObjectStore


class QuotaStatuses:
    """Writes the statuses of elastic quotas."""

    def __init__(
        self,
        shares: AdaptedShares,
        objects: ObjectStore,
        writer: ApiWriter,
        tasks: Tasks,
        due: Callable[[], None],
    ) -> None:
        """`due` is called when there is something to write."""
        self._shares = shares
        self._writer = StatusWriter[str](objects, writer, tasks, self._target, self._status, kind="quota")
        """By the names of shares."""
        self._due = due
        self._are_all_marked = False

    def mark(self, ref: ShareRef) -> None:
        """Compare the status of a quota soon: its usage has changed."""
        if ref.ledger.source == ELASTIC_QUOTA:
            self._writer.mark(ref.name)
            self._due()

    def mark_all(self) -> None:
        """Compare the status of all quotas soon."""
        self._are_all_marked = True
        self._due()

    def write(self) -> None:
        """Begin to write what has changed."""
        if self._are_all_marked and (ledger := self._ledger()) is not None:
            for name in ledger.tree.shares:
                self._writer.mark(name)
            self._are_all_marked = False
        self._writer.write()

    def _target(self, name: str) -> Target | None:
        ledger = self._ledger()
        if ledger is None or not isinstance(ledger.adapter, ElasticQuotas) or name not in ledger.tree.shares:
            return None
        found = ledger.adapter.in_use(name.partition("/")[0])
        if found is None:
            return None
        source, quota = found
        return Target(source, quota.metadata.namespace, quota.metadata.name, quota.metadata.uid)

    def _ledger(self) -> Ledger | None:
        return next((each for each in self._shares.ledgers if each.source == ELASTIC_QUOTA), None)

    def _status(self, name: str, newest: ElasticQuota) -> dict[str, Any] | None:
        """Return the part of the status to write; None if it is as it should be."""
        ledger = self._ledger()
        if ledger is None or name not in ledger.tree.shares:
            return None
        named = {**(newest.spec.min or {}), **(newest.spec.max or {})}
        held = ledger.used(name)
        used = {each: held.get(each, 0) for each in [*named][:MAX_RESOURCES] if each != PODS}
        used |= {each: amount for each in (CPU, MEMORY, EPHEMERAL_STORAGE) if (amount := held.get(each))}
        before = newest.status.used or {}
        if before.keys() == used.keys() and _amounts(before) == used:
            return None
        gone = dict.fromkeys(before.keys() - used.keys())
        return {"used": {**gone, **{each: quantity(each, amount) for each, amount in used.items()}}}


def _amounts(shown: Mapping[str, str | int | float]) -> Mapping[str, int] | None:
    try:
        return allocatable_of(shown)
    except ValueError:
        return None

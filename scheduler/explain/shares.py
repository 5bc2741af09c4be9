"""Reports the shares of the cluster: what each has, uses, borrows and lends, and which pods wait for it."""

from collections import Counter
from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from scheduler.api.pods.pod import Pod
from scheduler.api.quota.quota_amounts import MAX
from scheduler.engine.engine import Engine
from scheduler.explain.documents import ShareAmounts, ShareReport, SharesReport, ShareStanding
from scheduler.explain.waiting import in_queue
from scheduler.process.time_slice import TimeSlice
from scheduler.quota.adapter import Asked
from scheduler.quota.apis.elastic_quotas import ALL
from scheduler.quota.balances import Balance, balances, depth_first
from scheduler.quota.ledger import Ledger
from scheduler.state.share_usage import ShareSelector

MAX_SHARES = 5_000
"""That are reported."""


class Waiting:
    """The pods without a node, by the share that they count against."""

    def __init__(self) -> None:
        self.pods: Counter[tuple[str, str]] = Counter()
        """Source and name of the share → how many pods."""
        self.amounts: dict[tuple[str, str], Counter[str]] = {}
        """The same → what they ask for."""

    def add(self, engine: Engine, selector: ShareSelector, pod: Pod, count: int) -> None:
        """Count a pod of a selector, and those that are like it, if they have a share."""
        ref = engine.shares.ref(selector)
        if ref is None:
            return
        key = ref.ledger.source, ref.name
        self.pods[key] += count
        amounts, known = self.amounts.setdefault(key, Counter()), ref.ledger.tree.resources
        wanted = ref.ledger.wanted(ref.name, Asked(engine.shares.need_of_pod(pod), ref.said))
        for resource, amount in wanted.items():
            if resource in known:  # anyone who creates pods invents names
                amounts[resource] += amount * count


async def report_on_shares(engine: Engine) -> SharesReport:
    """Report on all shares. Other tasks run every few milliseconds."""
    time_slice = TimeSlice()
    pods, waiting = tuple(each.pod for _, each in in_queue(engine)), Waiting()
    alike: Counter[tuple[ShareSelector, int, str]] = Counter()
    firsts: dict[tuple[ShareSelector, int, str], Pod] = {}
    for pod in pods:
        with_claims = pod.uid if engine.shares.devices is not None and pod.spec.resource_claims else ""
        kind = engine.shares.selector_of(pod), id(pod.resources), with_claims  # resources are shared by those alike
        alike[kind] += 1
        firsts.setdefault(kind, pod)
        await time_slice.give_way()
    for kind, count in alike.items():
        waiting.add(engine, kind[0], firsts[kind], count)
        await time_slice.give_way()
    reports: list[ShareReport] = []
    waker = engine.share_parts.waker
    for ledger in engine.shares.ledgers:
        of_ledger = await _of_ledger(ledger, waiting, time_slice)
        if waker is not None and waker.order.by_share:
            for number, report in enumerate(of_ledger):
                if report.name in ledger.tree.shares:
                    value = waker.order.standing(ledger, report.name)
                    of_ledger[number] = replace(
                        report, standing=ShareStanding(waker.order.name, min(value, float(MAX)))
                    )
                await time_slice.give_way()
        reports += of_ledger
    return SharesReport(found=True, state="on", shares=reports[:MAX_SHARES], more=max(0, len(reports) - MAX_SHARES))


async def _of_ledger(ledger: Ledger, waiting: Waiting, time_slice: TimeSlice) -> list[ShareReport]:
    tree, problems = ledger.tree, ledger.problems
    names = [(name, depth) for name, depth in depth_first(tree) if name != ALL or tree.children[name]]
    pods = Counter({name: waiting.pods[ledger.source, name] for name, _ in names})
    amounts = {name: Counter(waiting.amounts.get((ledger.source, name))) for name, _ in names}
    for name, _ in reversed(names):
        if parent := tree.shares[name].parent:
            pods[parent] += pods[name]
            amounts[parent].update(amounts[name])
    by_resource: dict[str, Mapping[str, Balance]] = {}
    for resource in sorted(tree.resources):
        with ledger.held():
            by_resource[resource] = balances(tree, resource)
        await time_slice.give_way()
    reports = [
        ShareReport(
            name=name,
            source=ledger.source,
            parent=tree.shares[name].parent,
            depth=depth,
            weight=tree.shares[name].weight,
            priority=tree.shares[name].priority,
            waiting=pods[name],
            resources=list(_amounts(name, by_resource, amounts[name])),
        )
        for name, depth in names
    ]
    for name, problem in sorted(problems.items()):
        count = waiting.pods[ledger.source, name]
        reports.append(ShareReport(name=name, source=ledger.source, waiting=count, problem=problem))
    return reports


def _amounts(
    name: str, by_resource: Mapping[str, Mapping[str, Balance]], waiting: Mapping[str, int]
) -> Iterator[ShareAmounts]:
    """Yield the resources of which a share has, uses or wants any."""
    for resource, of_all in by_resource.items():
        of_it, wanted = of_all[name], waiting.get(resource, 0)
        if any(of_it) or wanted:
            guaranteed, maximum, used, borrowed, lent = of_it
            # Sums of what anyone asks for: JSON has no larger ones.
            counts = (min(each, MAX) for each in (used, borrowed, lent, wanted))
            yield ShareAmounts(resource, min(guaranteed, MAX), maximum, *counts)

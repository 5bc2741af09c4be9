"""Allocate devices to the ResourceClaims of pods."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from plugins.dynamic_resources.allocation.allocator import INVALID_POOLS
from plugins.dynamic_resources.allocation.availability import HAS_INVALID_POOLS, HAS_NONE
from plugins.dynamic_resources.allocation.catalog import catalog_of
from plugins.dynamic_resources.allocation.pools import DevicesError
from plugins.dynamic_resources.allocation.searching import Searching, have_alternatives, score_of
from plugins.dynamic_resources.amounts import check
from plugins.dynamic_resources.amounts.statuses import AmountsOfClaims
from plugins.dynamic_resources.amounts.writer import AmountsWriter
from plugins.dynamic_resources.claim_state import NOTED, ClaimState, ExtendedDemand
from plugins.dynamic_resources.claim_writer import ClaimWriter, only_for, release_of_group
from plugins.dynamic_resources.extended.claims import extended_amounts, in_memory, is_in_memory
from plugins.dynamic_resources.extended.resources import extended_resources_of
from plugins.dynamic_resources.extended.writer import ExtendedClaimWriter
from plugins.dynamic_resources.gates import OF_GROUPS, OPTIONAL_OPERATIONS, declaring, skips_operations
from plugins.dynamic_resources.obstacles import DeviceObstacles, elsewhere
from plugins.dynamic_resources.pod_claims import (
    ClaimHints,
    after_class_deleted,
    claims_key,
    is_reserved_for,
    resource_claims_of,
)
from plugins.dynamic_resources.prebind import BindingFailed, PreBinding, is_overdue, is_ready, needs_waiting
from plugins.node_resources.fit_hints import named_resources
from plugins.shared.column_math import normalized
from plugins.shared.node_matching import matching_any
from scheduler import framework as fw
from scheduler.api.devices import ClaimProblem, ResourceClaim
from scheduler.api.selectors import as_one_message, problems_of, required_terms
from scheduler.framework.field_errors import invalid
from scheduler.framework.plugin import CompletingPlugin

NOT_AVAILABLE: Final = fw.unresolvable("resourceclaim not available on the node")
NOT_ALLOCATABLE: Final = fw.unresolvable("cannot allocate all claims")
NOTHING_TO_DEALLOCATE: Final = fw.unschedulable()
RELEASED: Final = fw.unschedulable("deallocation and deletion of ResourceClaims completed")
CANNOT_FIT: Final = fw.unresolvable("cannot fit resource")
STALE_CLAIM: Final = fw.unresolvable("cannot schedule extended resource claim")
DELETED: Final = fw.unschedulable("deletion of ResourceClaim completed")
DEALLOCATED: Final = fw.unschedulable("deallocation of ResourceClaim completed")

_NOT_AVAILABLE, _CANNOT_FIT, _STALE, _NEEDS_OPERATIONS = 3, 4, 5, 6
_REFUSALS: Final = {
    HAS_NONE: NOT_ALLOCATABLE,
    HAS_INVALID_POOLS: fw.unresolvable(INVALID_POOLS),
    _NOT_AVAILABLE: NOT_AVAILABLE,
    _CANNOT_FIT: CANNOT_FIT,
    _STALE: STALE_CLAIM,
}

_EXPLAINED: Final = "ExplainDynamicResources"
_FILTER_TIMEOUT: Final = fw.Duration(10)
_BINDING_TIMEOUT: Final = fw.Duration(600)


@dataclass
class DynamicResources(
    fw.PreEnqueuePlugin,
    fw.PreFilterPlugin,
    fw.FilterNodesPlugin,
    fw.PostFilterPlugin,
    fw.PodGroupReleasePlugin,
    fw.ScoreNodesPlugin,
    fw.NormalizeScorePlugin,
    fw.SignPlugin,
    CompletingPlugin,
    fw.PreBindPlugin,
    fw.ExplainPlugin,
):
    """Filter: devices for all claims of the pod can be had on the node, or what they have can be used there.

    PreEnqueue waits for claims that are missing, Score prefers the earlier entries of `firstAvailable`, Reserve takes
    the devices, PreBind writes that down, PostFilter gives back a claim's devices that keep the pod from every node.
    For extended resources that a DeviceClass stands for, and the node does not offer itself, PreBind creates a claim.
    Rule: dynamicresources/dynamicresources.go and extendeddynamicresources.go at v1.37.2.
    """

    name: ClassVar[str] = "DynamicResources"
    aspects: ClassVar[fw.Aspect] = fw.Aspect.NAME
    signs_spec: ClassVar[bool] = True
    normalizes_by_range: ClassVar[bool] = True
    signs_despite_objects: ClassVar[str] = (
        "a pod that needs devices is not signed, the answers for others read no objects, and all are forgotten when "
        "DeviceClasses begin or cease to stand for a resource"
    )
    writes: ClassVar[Sequence[fw.Write]] = (
        fw.Write(fw.RESOURCE_CLAIM, ("get", "patch", "create", "delete")),
        fw.Write(fw.RESOURCE_CLAIM, ("patch",), "status"),
        fw.Write(fw.RESOURCE_CLAIM, ("patch",), "binding"),
        fw.Write(fw.POD, ("get",)),
        fw.Write(fw.POD, ("patch",), "status"),
    )

    filter_timeout: fw.Duration = _FILTER_TIMEOUT
    """How long the search for devices may take on one node; 0 for as long as it takes."""

    binding_timeout: fw.Duration = _BINDING_TIMEOUT
    """How long a binding waits for devices that have to be made ready."""

    @property
    def wait_seconds(self) -> float:
        return super().wait_seconds + self.binding_timeout

    def start(self, handle: fw.Handle) -> None:
        self.handle = handle
        self._catalog = catalog = catalog_of(handle)  # which listens from now on: no decision waits for it
        self._extended = extended_resources_of(handle)
        self._searching = Searching(handle, catalog, self.filter_timeout)
        self._writer = ClaimWriter(handle, catalog)
        self._extended_writer = ExtendedClaimWriter(handle, self._writer)
        self._amounts = AmountsOfClaims(catalog, self._searching)
        self._amounts_writer = AmountsWriter(handle)
        self._pre_binding = PreBinding(
            handle, catalog, self._writer, self._extended_writer, self._amounts_writer, self.binding_timeout
        )

    def problems(self) -> Iterator[tuple[str, str]]:
        """Yield each problem of the arguments, with its place.

        Rule: validation_pluginargs.go (ValidateDynamicResourcesArgs) at v1.36.3.
        """
        if self.filter_timeout < 0:
            yield "filterTimeout", invalid(str(self.filter_timeout), "must be zero or positive")
        if self.binding_timeout < 1:
            yield "bindingTimeout", invalid(str(self.binding_timeout), "must be at least 1 second")

    def events_to_register(self) -> Sequence[fw.ClusterEventWithHint]:
        """Rule: dynamicresources.go (EventsToRegister).

        A rule that changes or goes is an update of slices there, and no pod waits for a node to declare that it can
        leave operations out. Beyond it, a deletion may help: of a slice, without which a pool may be valid or all of a
        node's devices be free; of a class, as an older one may stand for its resource now; of a pod, which leaves space
        for devices that need some.
        """
        hints = ClaimHints(self._catalog)
        action = fw.Action
        on_node = action.ADD | action.UPDATE_NODE_LABEL | action.UPDATE_NODE_ALLOCATABLE
        if OPTIONAL_OPERATIONS in self._catalog.gates.names:
            on_node |= action.UPDATE_NODE_DECLARED_FEATURE
        changed = action.ADD | action.UPDATE
        freed = action.DELETE | action.UPDATE_POD_SCALE_DOWN
        of_pods = (fw.on(fw.ASSIGNED_POD, freed, hints.after_space_freed, claims_key),) if self.completes_pods else ()
        return (
            *of_pods,
            fw.on(fw.NODE, on_node),
            fw.on(fw.RESOURCE_CLAIM, changed | action.DELETE, hints.after_claim, claims_key),
            fw.on(fw.TARGET_POD, action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, hints.after_pod, claims_key),
            fw.on(fw.DEVICE_CLASS, changed),
            fw.on(fw.RESOURCE_SLICE, changed),
            fw.on(fw.DEVICE_TAINT_RULE, action.UPDATE | action.DELETE),
            fw.on(fw.RESOURCE_SLICE, action.DELETE),
            fw.on(fw.DEVICE_CLASS, action.DELETE, after_class_deleted, named_resources),
        )

    def pre_enqueue(self, pod: fw.Pod) -> fw.Status | None:
        """Hold the pod back until all of its claims exist."""
        if not pod.spec.resource_claims:
            return None
        try:
            resource_claims_of(pod, self._catalog)
        except ClaimProblem as problem:
            return fw.unresolvable(str(problem))
        return None

    def sign(self, pod: fw.Pod) -> Hashable | None:
        """Pods that need no devices are alike: any node will do, with the same score. Others depend on objects."""
        return None if pod.spec.resource_claims or self._extended.classes_of(pod) else ()

    def pre_filter(self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns) -> fw.Status | None:
        """Skip pods that need no devices; look at the claims and their classes, and at extended resources."""
        state.write(self.name, ClaimState([], nodes))
        classes = self._extended.classes_of(pod) if self._extended.chosen else None
        if not pod.spec.resource_claims and not classes:
            return fw.SKIP
        try:
            claims = resource_claims_of(pod, self._catalog)
        except ClaimProblem as problem:
            return fw.unresolvable(str(problem))
        extended: ExtendedDemand | None = None
        if classes:
            earlier = self._catalog.extended_claim_for(pod)
            claims.append(earlier or in_memory(pod))
            amounts = extended_amounts(pod)
            # What overflows to 0 is asked for, so there is a claim; it asks for nothing.
            counted = {name: class_name for name, class_name in classes.items() if name in amounts}
            extended = ExtendedDemand(amounts, counted, is_stale=earlier is not None)
        if not claims:
            return fw.SKIP
        claim_state = ClaimState(claims, nodes, extended)
        self._share(claim_state, self._group_of(state, pod))
        for i, claim in enumerate(claims):
            allocation = claim.status.allocation
            if allocation is None:
                refusal = self._refusal_of(claim, check_requests=i != claim_state.of_extended)
                if refusal is not None:
                    return refusal
            elif allocation.node_selector is not None:
                claim_state.terms[i] = required_terms(allocation.node_selector)
                problems = problems_of(claim_state.terms[i])
                if problems:
                    raise DevicesError(as_one_message(problems))
        claim_state.mapped.update(self._amounts.mapped(claim_state))
        state.write(self.name, claim_state)
        return None

    def filter_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int32Column | None:
        """Return for each of `rows` whether devices are available there, or usable.

        Raises DevicesError or TimeoutError, either of which ends the attempt.
        """
        claim_state = self._state_of(state)
        codes = np.zeros(len(rows), np.int32)
        if claim_state.extended is not None:
            if claim_state.extended.is_stale:
                codes[:] = _STALE
                return codes
            codes[claim_state.extended.missing(nodes, rows)] = _CANNOT_FIT
        self._refuse_sharing(pod, claim_state, rows, codes)
        left = rows[codes == 0]
        found = np.zeros(len(left), np.int32)
        for needed, places in claim_state.by_need(left):
            answers = self._searching.codes(pod, claim_state, needed, left[places])
            if answers is not None:
                found[places] = answers
        if any(skips_operations(claim_state.claims[i]) for i in claim_state.shared):
            found[~declaring(nodes, left)] = _NEEDS_OPERATIONS
        codes[codes == 0] = found
        if self.completes_pods:
            check.refuse(self._amounts, pod, claim_state, rows, codes)
        can_be_had = codes == 0
        for i, claim in enumerate(claim_state.users):
            unusable = self._unusable(claim_state, i, claim, rows)
            if unusable is not None:
                unusable &= can_be_had
                if unusable.any():
                    claim_state.unavailable.add(i)
                    codes[unusable] = _NOT_AVAILABLE
        return codes

    def status_of(self, state: fw.CycleState, pod: fw.Pod, code: int) -> fw.Status:
        if code >= NOTED:
            return self._state_of(state).refusals[code - NOTED]
        if code == _NEEDS_OPERATIONS:
            claim_state = self._state_of(state)
            shared = (claim_state.claims[i] for i in sorted(claim_state.shared))
            needs = f"requires {OPTIONAL_OPERATIONS} feature on the node"
            return fw.unresolvable(f"resource claim {next(filter(skips_operations, shared))} allocation {needs}")
        return _REFUSALS[code]

    def obstacles(self, state: fw.CycleState, pod: fw.Pod, node: fw.NodeInfo) -> Sequence[fw.Obstacle]:
        """The claims for which there are no devices, or whose devices are elsewhere. Raises as `filter_nodes`."""
        claim_state = self._state_of(state)
        rows = np.array([node.row])
        codes = self.filter_nodes(state, pod, claim_state.nodes, rows)
        if codes is not None and codes[0] == _NOT_AVAILABLE:
            unusable = (self._unusable(claim_state, i, claim, rows) for i, claim in enumerate(claim_state.users))
            pairs = zip(claim_state.users, unusable, strict=True)
            return [elsewhere(claim) for claim, found in pairs if found is not None and found.any()]
        if codes is None or codes[0] != HAS_NONE:
            return ()
        known = state.get(_EXPLAINED, DeviceObstacles)
        if known is None:
            known = DeviceObstacles(claim_state.users, self._catalog, self.handle)
            state.write(_EXPLAINED, known)
        return known.on(node.node)

    def post_filter(
        self, state: fw.CycleState, pod: fw.Pod, node_to_status: Mapping[str, fw.Status]
    ) -> tuple[fw.PostFilterResult | None, fw.Status | None]:
        """Deallocate one claim that no other pod uses, if some node cannot use its devices.

        Or else delete the claim that an earlier attempt made for extended resources.
        """
        return None, NOTHING_TO_DEALLOCATE if pod.is_resize else self._release(pod, self._state_of(state))

    def _release(self, pod: fw.Pod, claim_state: ClaimState) -> fw.Status:
        for claim in only_for(claim_state, pod.uid):
            self._writer.deallocate(pod, claim)
            return DEALLOCATED
        if claim_state.extended is not None and claim_state.extended.is_stale:
            self._catalog.extended_claims.wake_when_gone(pod, self.handle.activator)
            self._extended_writer.delete(pod, claim_state.claims[-1])
            return DELETED
        return NOTHING_TO_DEALLOCATE

    def release_for_pod_group(self, group: fw.PodGroup, members: Sequence[tuple[fw.CycleState, fw.Pod]]) -> fw.Status:
        """Do the same for each member of a group; like kube-scheduler, not for one with a topology, or of groups.

        If there is nothing to do for some member, give back a claim of the group.
        """
        if group.minimum_groups or (self.handle.pod_groups.are_tried_in_placements and group.has_constraints):
            return NOTHING_TO_DEALLOCATE
        states = [(found, pod) for state, pod in members if (found := state.get(self.name, ClaimState)) is not None]
        released = [self._release(pod, claim_state) for claim_state, pod in states]
        if NOTHING_TO_DEALLOCATE in released and OF_GROUPS in self._catalog.gates.names:
            return release_of_group(group, states, self.handle.pod_groups, self._writer) or RELEASED
        return RELEASED

    def score_nodes(
        self, state: fw.CycleState, pod: fw.Pod, nodes: fw.NodeColumns, rows: fw.Rows
    ) -> fw.Int64Column | None:
        """Return for each of `rows` the sum over requests with alternatives: 8 for the first, 7 for the second, …"""
        claim_state = self._state_of(state)
        if not claim_state.searches or not have_alternatives(claim_state.users):
            return None
        scores = self._searching.scores(claim_state, rows)
        return scores + sum(score_of([claim], ()) for claim in claim_state.users if claim.status.allocation is not None)

    def normalize_score(self, state: fw.CycleState, pod: fw.Pod, scores: fw.Int64Column) -> fw.Int64Column:
        """Scale the sums so that the highest becomes 100."""
        return normalized(scores, reverse=False)

    def reserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Take devices for the claims that have none. Raises DevicesError if Filter found none on the node."""
        claim_state, group = self._state_of(state), self._group_of(state, pod)
        for i in claim_state.shared:
            claim_state.reserved[i] = self._catalog.allocations.reserve(claim_state.claims[i], group)
        if all(claim.status.allocation is not None for claim in claim_state.claims):
            return None
        row = claim_state.nodes.row_of(node_name)
        if row is None:
            raise DevicesError("claim allocation not found for node")
        for i, claim, allocation in self._searching.allocate(claim_state, row):
            claim_state.reserved[i] = self._catalog.allocations.reserve(claim.allocated(allocation), group)
            claim_state.claims[i] = claim
        return None

    @property
    def completes_pods(self) -> bool:
        """Whether pods count with what they take by devices."""
        return self._amounts.are_counted

    def completed(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Pod:
        """Return the pod with what it takes by devices. Raises DevicesError if Filter found none on the node."""
        claim_state = state.get(self.name, ClaimState)
        row = claim_state.nodes.row_of(node_name) if claim_state is not None and claim_state.claims else None
        if claim_state is None or row is None:
            return pod.with_device_amounts(())
        return pod.with_device_amounts(self._amounts.on(pod, claim_state, row))

    def unreserve(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> None:
        """Free what `reserve` took, and take the pod out of the claims that were written already."""
        claim_state = state.get(self.name, ClaimState)
        if claim_state is None:
            return
        for i, claim in enumerate(claim_state.claims):
            if claim_state.reserved.pop(i, None) is not None:
                self._catalog.allocations.release(claim.uid, is_written=False)
            if i == claim_state.of_extended:
                if not is_in_memory(claim):
                    self._extended_writer.delete(pod, claim)
            elif claim.status.allocation is not None and is_reserved_for(pod, claim):
                self._writer.unreserve(pod, claim)
        if claim_state.is_amount_written:
            claim_state.is_amount_written = False
            self._amounts_writer.clear(pod)

    def concerns_reserve(self, pod: fw.Pod) -> bool:
        return self.sign(pod) is None

    def pre_bind_pre_flight(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Skip pods without claims."""
        return None if self._state_of(state).claims else fw.SKIP

    async def pre_bind(self, state: fw.CycleState, pod: fw.Pod, node_name: str) -> fw.Status | None:
        """Write allocations and reservations, then wait for devices that have to be made ready.

        Raises WriteFailed, BindingFailed.
        """
        await self._pre_binding.run(pod, self._state_of(state), node_name)
        return None

    def _state_of(self, state: fw.CycleState) -> ClaimState:
        """Return what PreFilter found. Raises DevicesError if PreFilter is disabled."""
        claim_state = state.get(self.name, ClaimState)
        if claim_state is None:
            raise DevicesError("not found")
        return claim_state

    def _group_of(self, state: fw.CycleState, pod: fw.Pod) -> fw.GroupKey | None:
        """Return the group together with which a pod is tried."""
        return self.handle.pod_groups.key_of(pod) if state.is_of_group_cycle else None

    def _share(self, claim_state: ClaimState, group: fw.GroupKey | None) -> None:
        """Take over what other pods of the group have reserved for the same claims."""
        for i, claim in enumerate(claim_state.claims):
            allocation = None if group is None else self._catalog.allocations.shared_by(group, claim.uid)
            if allocation is not None and claim.status.allocation is None:
                claim_state.claims[i] = claim.allocated(allocation)
                claim_state.shared.add(i)

    def _refusal_of(self, claim: ResourceClaim, *, check_requests: bool) -> fw.Status | None:
        """Why a claim cannot be allocated on any node. Raises DevicesError for a request of an unknown kind."""
        if self._catalog.allocations.in_flight(claim.uid) is not None:
            return fw.unresolvable(f"resource claim {claim} is in the process of being allocated")
        if not check_requests:
            return None
        for request in claim.requests:
            if request.exactly is not None:
                asked = [(request.name, request.exactly.device_class_name)]
            elif request.first_available:
                asked = [(f"{request.name}/{each.name}", each.device_class_name) for each in request.first_available]
            else:
                return fw.unresolvable(f"resource claim {claim}, request {request.name}: unknown request type")
            for name, class_name in asked:
                if not class_name:
                    raise DevicesError(f"request {name}: unsupported request type")
                if self._catalog.device_class(class_name) is None:
                    return fw.unresolvable(f"request {name}: device class {class_name} does not exist")
        return None

    def _unusable(
        self, claim_state: ClaimState, index: int, claim: ResourceClaim, rows: fw.Rows
    ) -> fw.BoolColumn | None:
        """Return on which of `rows` an allocated claim cannot be used; None if there is no such row."""
        if claim.status.allocation is None:
            return None
        if needs_waiting(claim) and not self._may_become_ready(claim):
            return np.ones(len(rows), np.bool_)
        terms = claim_state.terms.get(index)
        unusable = None if terms is None else ~matching_any(terms, claim_state.nodes, rows)
        if skips_operations(claim):
            without = ~declaring(claim_state.nodes, rows)
            unusable = without if unusable is None else unusable | without
        return unusable

    def _refuse_sharing(self, pod: fw.Pod, claim_state: ClaimState, rows: fw.Rows, codes: fw.Int32Column) -> None:
        """Write the code of a refusal for each of `rows` where a claim is that other pods use, and must not."""
        for i in sorted(claim_state.mapped):
            refusal = check.refusal_of_sharing(pod, claim_state, i, self._catalog.gates)
            if refusal is None:
                continue
            here, terms = codes == 0, claim_state.terms.get(i)
            if terms is not None:
                here &= matching_any(terms, claim_state.nodes, rows)
            if i not in claim_state.shared and skips_operations(claim_state.claims[i]):
                here &= declaring(claim_state.nodes, rows)
            codes[here] = claim_state.code_of(refusal)

    def _may_become_ready(self, claim: ResourceClaim) -> bool:
        try:
            return is_ready(claim) or not is_overdue(claim, self.binding_timeout, self.handle.reader.now().timestamp())
        except BindingFailed:
            return False

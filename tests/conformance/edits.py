"""Edits of kube-scheduler's files, with which the oracle is built.

`MENDED` is in every build: faults that Loadmaster does not copy, each with its row in docs/differences.md.

`BY_NAME` is in the build for pod groups only, and leaves nothing to chance there. In a pod group cycle one choice
follows from another: which of two equal nodes the first member gets decides what is left for the second. So equals
cannot be compared afterwards, as for a single pod; here the smallest name wins wherever kube-scheduler draws lots or
goes by the order of a Go map.

An edit whose text is not found exactly once fails, so that a new version cannot lose one silently.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from tests.controlplane.toolchain import BuildError

SCHEDULER: Final = "pkg/scheduler"
PLUGINS: Final = f"{SCHEDULER}/framework/plugins"

Edits = Mapping[str, Mapping[str, str]]
"""File below kube-scheduler's module → what is there, and what replaces it."""

MENDED: Final[Edits] = {
    # Each image volume is capped by itself.
    f"{PLUGINS}/imagelocality/image_locality.go": {
        ("normalizedImageName(volume.Image.Reference)]; ok {\n\t\t\tsum += scaledImageScore(state, totalNumNodes)\n"): (
            "normalizedImageName(volume.Image.Reference)]; ok {\n"
            "\t\t\tsum += min(scaledImageScore(state, totalNumNodes), maxContainerThreshold)\n"
        ),
    },
    # A capacity without a total, only with a largest volume, does not end the process.
    f"{PLUGINS}/volumebinding/volume_binding.go": {
        "if provision.NodeCapacity == nil {": (
            "if provision.NodeCapacity == nil || provision.NodeCapacity.Capacity == nil {"
        ),
    },
    # Of several capacities that would do the first by name, not any.
    f"{PLUGINS}/volumebinding/binder.go": {
        "\tsizeInBytes := quantity.Value()\n": (
            "\tsort.Slice(capacities, func(i, j int) bool {\n"
            "\t\ta, b := capacities[i], capacities[j]\n"
            '\t\treturn a.Namespace+"/"+a.Name < b.Namespace+"/"+b.Name\n'
            "\t})\n"
            "\tsizeInBytes := quantity.Value()\n"
        ),
    },
    # Of several missing drivers the first by name is told, not any.
    f"{PLUGINS}/nodevolumelimits/csi.go": {
        'import (\n\t"context"\n\t"fmt"\n': 'import (\n\t"context"\n\t"fmt"\n\t"maps"\n\t"slices"\n',
        "\t\tfor _, driverName := range newVolumes {\n": (
            "\t\tfor _, driverName := range slices.Sorted(maps.Values(newVolumes)) {\n"
        ),
    },
    # A group of which no pod came as far as this plugin has no claims to give back.
    f"{PLUGINS}/dynamicresources/dynamicresources.go": {
        "\tpodGroupState, err := getPodGroupStateDataFromPodGroupCycleState(state)\n\tif err != nil {\n": (
            "\tpodGroupState, err := getPodGroupStateDataFromPodGroupCycleState(state)\n"
            "\tif err != nil && !errors.Is(err, fwk.ErrNotFound) {\n"
        ),
    },
    # Of several budgets that select a pod the first by name is charged, not any.
    f"{SCHEDULER}/framework/preemption/preemption.go": {
        'import (\n\t"context"\n\t"errors"\n\t"fmt"\n\t"math"\n': (
            'import (\n\t"context"\n\t"errors"\n\t"fmt"\n\t"math"\n\t"sort"\n'
        ),
        "\t\treturn pdbLister.List(labels.Everything())\n": (
            "\t\tpdbs, err := pdbLister.List(labels.Everything())\n"
            "\t\tsort.Slice(pdbs, func(i, j int) bool { return pdbs[i].Name < pdbs[j].Name })\n"
            "\t\treturn pdbs, err\n"
        ),
    },
}

BY_NAME: Final[Edits] = {
    f"{SCHEDULER}/framework/sorted_nodes.go": {
        # Of nodes with the same score.
        "h[i].Randomizer > h[j].Randomizer": "h[i].Name < h[j].Name",
    },
    f"{SCHEDULER}/framework/types.go": {
        # Of members with the same priority.
        (
            "\tif a.Timestamp.Before(b.Timestamp) {\n\t\treturn -1\n"
            "\t} else if a.Timestamp.After(b.Timestamp) {\n\t\treturn 1\n\t}\n"
            "\t// On platforms"
        ): "\t// On platforms",
        # Of the pods of a tree of groups.
        "\tfor _, list := range pgqi.QueuedPodInfos {\n\t\tfor _, pInfo := range list {\n\t\t\tok := fn(pInfo)\n": (
            "\tvar all []*QueuedPodInfo\n"
            "\tfor _, list := range pgqi.QueuedPodInfos {\n\t\tall = append(all, list...)\n\t}\n"
            "\tslices.SortFunc(all, PodGroupMemberPodsOrderingFunc)\n"
            "\t{\n\t\tfor _, pInfo := range all {\n\t\t\tok := fn(pInfo)\n"
        ),
    },
    f"{SCHEDULER}/schedule_one_podgroup.go": {
        # Of placements with the same score.
        "score.Randomizer > bestScore.Randomizer": "score.Placement.Name < bestScore.Placement.Name",
        # What is decided is told, with the placement, and nothing is bound.
        "\twaitingOnPreemption bool\n": "\twaitingOnPreemption bool\n\tplacement string\n",
        (
            "\t\tresult, placementRevertFns := sched.podGroupSchedulingDefaultAlgorithm("
            "ctx, schedFwk, placementCycleState, podGroupInfo, queuedPodGroupInfo)\n"
        ): (
            "\t\tresult, placementRevertFns := sched.podGroupSchedulingDefaultAlgorithm("
            "ctx, schedFwk, placementCycleState, podGroupInfo, queuedPodGroupInfo)\n"
            "\t\tresult.placement = placement.Name\n"
        ),
        (
            "\t\tresult, placementRevertFns := sched.compositePodGroupSchedulingDefaultAlgorithm("
            "ctx, schedFwk, placementCycleState, root, podGroupInfo, subtreeResult)\n"
        ): (
            "\t\tresult, placementRevertFns := sched.compositePodGroupSchedulingDefaultAlgorithm("
            "ctx, schedFwk, placementCycleState, root, podGroupInfo, subtreeResult)\n"
            "\t\tresult.placement = placement.Name\n"
        ),
        # Only members of groups that start then are put where victims were, in the order of their groups.
        "\t\t\tfor _, res := range results {\n": (
            "\t\t\tfor res := range successfulLeafResults(rootPodGroupInfo.PodGroupInfo, results) {\n"
        ),
        "\t\t\tfor _, child := range pgi.Children {\n\t\t\t\tif !walk(child) {\n": (
            "\t\t\tfor _, child := range pgi.GetChildGroups() {\n\t\t\t\tif !walk(child) {\n"
        ),
        # Groups that share a refusal are told of a preemption once.
        "\t\tfor _, pgResult := range completePGResults {\n\t\t\tpgResult.status.AppendReason(status.String())\n": (
            "\t\ttold := map[*fwk.Status]bool{}\n"
            "\t\tfor _, pgResult := range completePGResults {\n"
            "\t\t\tif told[pgResult.status] {\n\t\t\t\tcontinue\n\t\t\t}\n"
            "\t\t\ttold[pgResult.status] = true\n"
            "\t\t\tpgResult.status.AppendReason(status.String())\n"
        ),
        "\tfor _, podGroupResult := range podGroupResults {\n\t\tpgi := podGroupResult.podGroupInfo\n": (
            '\twitness := ctx.Value("pod group witness").(interface {\n'
            "\t\tDecided(*fwk.Status, bool, string)\n"
            "\t\tDecidedPart(string, *fwk.Status)\n"
            "\t\tBound(*v1.Pod, string)\n"
            "\t})\n"
            "\troot := podGroupResults[pgKey(rootPodGroupInfo.PodGroupInfo)]\n"
            "\twitness.Decided(root.status, root.waitingOnPreemption, root.placement)\n"
            "\tfor _, each := range podGroupResults {\n"
            "\t\twitness.DecidedPart(each.podGroupInfo.Name, each.status)\n"
            "\t}\n"
            "\tfor _, podGroupResult := range podGroupResults {\n\t\tpgi := podGroupResult.podGroupInfo\n"
        ),
        (
            "go sched.runBindingCycle(ctx, podCtx.state, schedFwk, podResult.scheduleResult, assumedPodInfo, "
            "podSchedulingStart, podCtx.podsToActivate)"
        ): "witness.Bound(assumedPodInfo.Pod, podResult.scheduleResult.SuggestedHost)",
    },
    f"{PLUGINS}/topologyaware/topology_placement.go": {
        'import (\n\t"context"\n\t"fmt"\n': 'import (\n\t"context"\n\t"fmt"\n\t"sort"\n',
        # Placements are tried one after the other, and the first one's failure is told.
        "\treturn &fwk.GeneratePlacementsResult{Placements: placements}, nil\n": (
            "\tsort.Slice(placements, func(i, j int) bool { return placements[i].Name < placements[j].Name })\n"
            "\treturn &fwk.GeneratePlacementsResult{Placements: placements}, nil\n"
        ),
        # Of members with a place the first one decides about the domain, and what is wrong with the others.
        "\treturn podGroupState.ScheduledPods(), nil\n": (
            "\tpods := podGroupState.ScheduledPods()\n"
            "\tsort.Slice(pods, func(i, j int) bool { return pods[i].Name < pods[j].Name })\n"
            "\treturn pods, nil\n"
        ),
        "\t\treturn results, nil\n": (
            "\t\tsort.Slice(results, func(i, j int) bool { return results[i].Name < results[j].Name })\n"
            "\t\treturn results, nil\n"
        ),
    },
    f"{SCHEDULER}/framework/preemption/types.go": {
        'import (\n\t"fmt"\n': 'import (\n\t"fmt"\n\t"slices"\n\t"strings"\n',
        # The order of victims, and of the pods of each; one whose node is gone does not keep others from being chosen.
        "\tfor _, node := range nodes {\n\t\tfor _, podInfo := range node.GetPods() {\n": (
            "\tbyNode := func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) }\n"
            '\tpodKey := func(p fwk.PodInfo) string { return p.GetPod().Namespace + "/" + p.GetPod().Name }\n'
            "\tbyPod := func(a, b fwk.PodInfo) int { return strings.Compare(podKey(a), podKey(b)) }\n"
            "\tfor _, node := range slices.SortedFunc(slices.Values(nodes), byNode) {\n"
            "\t\tfor _, podInfo := range slices.SortedFunc(slices.Values(node.GetPods()), byPod) {\n"
        ),
        "\tpodInfos := make([]fwk.PodInfo, len(allPods))\n": (
            "\tallPods = slices.DeleteFunc(allPods, func(p *v1.Pod) bool {\n"
            "\t\t_, err := snapshot.NodeInfos().Get(p.Spec.NodeName)\n"
            "\t\treturn err != nil\n"
            "\t})\n"
            "\tslices.SortFunc(allPods, func(a, b *v1.Pod) int {\n"
            '\t\treturn strings.Compare(a.Spec.NodeName+"/"+a.Name, b.Spec.NodeName+"/"+b.Name)\n'
            "\t})\n"
            "\tpodInfos := make([]fwk.PodInfo, len(allPods))\n"
        ),
    },
    # A victim that is put back has its anti-affinity, though none had any while all were gone.
    f"{PLUGINS}/interpodaffinity/filtering.go": {
        "\tif len(s.existingClusterWideAntiAffinityCounts) == 0 && incomingPodHasNoTerms": (
            "\tif pod.Spec.SchedulingGroup == nil && len(s.existingClusterWideAntiAffinityCounts) == 0 && "
            "incomingPodHasNoTerms"
        ),
    },
    f"{SCHEDULER}/framework/preemption/podgrouppreemption.go": {
        "sort.Slice(potentialVictims,": "sort.SliceStable(potentialVictims,",
        "sort.Slice(victimsToPreempt,": "sort.SliceStable(victimsToPreempt,",
    },
    f"{SCHEDULER}/framework/preemption/preemption.go": {
        # Of nodes that are equally good to preempt on.
        "\tif len(scoreFuncs) == 0 {\n": "\tsort.Strings(allCandidates)\n\tif len(scoreFuncs) == 0 {\n",
    },
}


def edits_of(kind: str) -> Edits:
    """Return the edits of a build of the oracle; one file may have some of both."""
    if kind == "oracle":
        return MENDED
    return {name: {**MENDED.get(name, {}), **BY_NAME.get(name, {})} for name in MENDED.keys() | BY_NAME.keys()}


def edited_files(module: Path, edits: Edits) -> dict[str, str]:
    """Name below the module's folder → text after the edits. Raises BuildError if something is not there to edit."""
    return {name: edit((module / name).read_text(), each.items(), name) for name, each in edits.items()}


def edit(text: str, edits: Iterable[tuple[str, str]], name: str) -> str:
    """The text with each edit made. Raises BuildError for one whose place is not found exactly once."""
    for before, after in edits:
        if text.count(before) != 1:
            raise BuildError(f"{name} has {text.count(before)} times what is to be edited once: {before.strip()!r}")
        text = text.replace(before, after)
    return text

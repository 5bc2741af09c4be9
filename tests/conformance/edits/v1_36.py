"""Edits of kube-scheduler 1.36."""

from collections.abc import Mapping
from typing import Final

from tests.conformance.edits.files import DEVICES, KUBERNETES, PLUGINS, SCHEDULER, Edits

_MERGE: Final = "mergeAffinityTermNamespacesIfNotEmpty("

MENDED: Final[Edits] = {
    KUBERNETES: {
        # As in 1.37: a namespace selector that was looked up is gone.
        f"{PLUGINS}/interpodaffinity/plugin.go": {f"{_MERGE}at fwk.AffinityTerm": f"{_MERGE}at *fwk.AffinityTerm"},
        f"{PLUGINS}/interpodaffinity/filtering.go": {
            f"{_MERGE}s.podInfo.{terms}()[i])": f"{_MERGE}&s.podInfo.{terms}()[i])"
            for terms in ("GetRequiredAffinityTerms", "GetRequiredAntiAffinityTerms")
        },
        f"{PLUGINS}/interpodaffinity/scoring.go": {
            f"{_MERGE}state.podInfo.{terms}()[i].AffinityTerm)": f"{_MERGE}&state.podInfo.{terms}()[i].AffinityTerm)"
            for terms in ("GetPreferredAffinityTerms", "GetPreferredAntiAffinityTerms")
        },
        # As in 1.37: image volumes count in the cap. In neither: each of them is capped by itself.
        f"{PLUGINS}/imagelocality/image_locality.go": {
            "\tscore := calculatePriority(imageScores, len(pod.Spec.InitContainers)+len(pod.Spec.Containers))\n": (
                "\timages := len(pod.Spec.InitContainers) + len(pod.Spec.Containers)\n"
                "\tfor _, volume := range pod.Spec.Volumes {\n"
                "\t\tif volume.Image != nil {\n\t\t\timages++\n\t\t}\n"
                "\t}\n"
                "\tscore := calculatePriority(imageScores, images)\n"
            ),
            (
                "normalizedImageName(volume.Image.Reference)]; ok {\n"
                "\t\t\tsum += scaledImageScore(state, totalNumNodes)\n"
            ): (
                "normalizedImageName(volume.Image.Reference)]; ok {\n"
                "\t\t\tsum += min(scaledImageScore(state, totalNumNodes), maxContainerThreshold)\n"
            ),
        },
        # As in 1.37: a new pod keeps the node that it is nominated to if it is gated, and any pod if it is updated.
        f"{SCHEDULER}/backend/queue/scheduling_queue.go": {
            (
                "\t\tif event == framework.EventUnscheduledPodAdd.Label() || "
                "event == framework.EventUnscheduledPodUpdate.Label() {\n"
                "\t\t\tp.nominator.addNominatedPod(logger, pInfo.PodInfo, nil)\n"
                "\t\t}\n"
            ): "",
            "\tpInfo := p.newQueuedPodInfo(ctx, pod)\n\tlogger := klog.FromContext(ctx)\n": (
                "\tpInfo := p.newQueuedPodInfo(ctx, pod)\n\tlogger := klog.FromContext(ctx)\n"
                "\tp.nominator.addNominatedPod(logger, pInfo.PodInfo, nil)\n"
            ),
            "\tpInfo := p.newQueuedPodInfo(ctx, newPod)\n": (
                "\tpInfo := p.newQueuedPodInfo(ctx, newPod)\n"
                "\tp.nominator.addNominatedPod(logger, pInfo.PodInfo, nil)\n"
            ),
        },
    },
    DEVICES: {
        # As in 1.37: a request for all devices counts those that are partly used, and fails.
        "structured/internal/incubating/allocator_incubating.go": {
            (
                "\t\t\t\t\t\t\tdevice := slice.Spec.Devices[deviceIndex]\n"
                "\t\t\t\t\t\t\tsuccess, err := alloc.CmpRequestOverCapacity(requestData.request, slice, device)\n"
            ): (
                "\t\t\t\t\t\t\tdevice := slice.Spec.Devices[deviceIndex]\n"
                "\t\t\t\t\t\t\tsuccess, err := CmpRequestOverCapacity(NewConsumedCapacity(), "
                "requestData.request.capacities(), device.AllowMultipleAllocations, device.Capacity, "
                "NewConsumedCapacity())\n"
            ),
        },
    },
}

BY_NAME: Final[Mapping[str, Mapping[str, str]]] = {
    f"{SCHEDULER}/schedule_one.go": {
        # Of nodes with the same score.
        "h[i].Randomizer > h[j].Randomizer": "h[i].Name < h[j].Name",
    },
    f"{SCHEDULER}/schedule_one_podgroup.go": {
        # Of members with the same priority: they are popped in the order of a map.
        "\t\t// Timestamps should be set, but dereferencing them for safety.\n": (
            "\t\tif p1 == p2 {\n\t\t\treturn pInfo1.Pod.Name < pInfo2.Pod.Name\n\t\t}\n"
        ),
        # Of placements with the same score.
        "score.Randomizer > bestScore.Randomizer": "score.Placement.Name < bestScore.Placement.Name",
        # What is decided is told, with the placement, and nothing is bound.
        "\twaitingOnPreemption bool\n": "\twaitingOnPreemption bool\n\tplacement string\n",
        "\t\tsched.nodeInfoSnapshot.ForgetPlacement()\n": (
            "\t\tsched.nodeInfoSnapshot.ForgetPlacement()\n\t\tresult.placement = placement.Name\n"
        ),
        "\tvar scheduledPods, unschedulablePods int\n": (
            '\twitness := ctx.Value("pod group witness").(interface {\n'
            "\t\tDecided(*fwk.Status, bool, string)\n"
            "\t\tBound(*v1.Pod, string)\n"
            "\t})\n"
            "\twitness.Decided(podGroupResult.status, podGroupResult.waitingOnPreemption, podGroupResult.placement)\n"
            "\tvar scheduledPods, unschedulablePods int\n"
        ),
        (
            "go sched.runBindingCycle(ctx, podCtx.state, schedFwk, podResult.scheduleResult, assumedPodInfo, "
            "podSchedulingStart, podCtx.podsToActivate)"
        ): "witness.Bound(assumedPodInfo.Pod, podResult.scheduleResult.SuggestedHost)",
    },
    f"{SCHEDULER}/backend/cache/snapshot.go": {
        "\treturn s.havePodsWithAffinityNodeInfoList, nil\n": (
            "\tfound := []fwk.NodeInfo{}\n"
            "\tfor _, node := range s.nodeInfoList {\n"
            "\t\tif len(node.GetPodsWithAffinity()) > 0 {\n"
            "\t\t\tfound = append(found, node)\n"
            "\t\t}\n"
            "\t}\n"
            "\treturn found, nil\n"
        ),
        "\treturn s.havePodsWithRequiredAntiAffinityNodeInfoList, nil\n": (
            "\tfound := []fwk.NodeInfo{}\n"
            "\tfor _, node := range s.nodeInfoList {\n"
            "\t\tif len(node.GetPodsWithRequiredAntiAffinity()) > 0 {\n"
            "\t\t\tfound = append(found, node)\n"
            "\t\t}\n"
            "\t}\n"
            "\treturn found, nil\n"
        ),
    },
    f"{SCHEDULER}/framework/plugins/topologyaware/topology_placement.go": {
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
    },
    f"{SCHEDULER}/framework/preemption/types.go": {
        'import (\n\t"maps"\n\t"slices"\n': 'import (\n\t"maps"\n\t"slices"\n\t"strings"\n',
        # The order of a group's victims.
        "\tfor _, node := range nodes {\n\t\tfor _, p := range node.GetPods() {\n": (
            '\tpodKey := func(p fwk.PodInfo) string { return p.GetPod().Namespace + "/" + p.GetPod().Name }\n'
            "\tbyNode := func(a, b fwk.NodeInfo) int { return strings.Compare(a.Node().Name, b.Node().Name) }\n"
            "\tbyPod := func(a, b fwk.PodInfo) int { return strings.Compare(podKey(a), podKey(b)) }\n"
            "\tfor _, node := range slices.SortedFunc(slices.Values(nodes), byNode) {\n"
            "\t\tfor _, p := range slices.SortedFunc(slices.Values(node.GetPods()), byPod) {\n"
        ),
        # A group started when the first of its pods did.
        "\t\t\t\tvictim.pods = append(victim.pods, p)\n": (
            "\t\t\t\tvictim.pods = append(victim.pods, p)\n"
            "\t\t\t\tif start := util.GetPodStartTime(p.GetPod()); start.Before(victim.earliestStartTime) {\n"
            "\t\t\t\t\tvictim.earliestStartTime = start\n"
            "\t\t\t\t}\n"
        ),
        "\tallPossibleVictims := slices.Collect(maps.Values(victimMap))\n": (
            "\tallPossibleVictims := slices.SortedFunc(maps.Values(victimMap), func(a, b *victim) int {\n"
            "\t\treturn byPod(a.pods[0], b.pods[0])\n"
            "\t})\n"
        ),
    },
    f"{SCHEDULER}/framework/preemption/podgrouppreemption.go": {
        "sort.Slice(potentialVictims,": "sort.SliceStable(potentialVictims,",
        "sort.Slice(victimsToPreempt,": "sort.SliceStable(victimsToPreempt,",
    },
    f"{SCHEDULER}/framework/preemption/preemption.go": {
        'import (\n\t"context"\n\t"errors"\n\t"fmt"\n\t"math"\n': (
            'import (\n\t"context"\n\t"errors"\n\t"fmt"\n\t"math"\n\t"sort"\n'
        ),
        # Which of two budgets that select a pod is used up first.
        "\t\treturn pdbLister.List(labels.Everything())\n": (
            "\t\tpdbs, err := pdbLister.List(labels.Everything())\n"
            "\t\tsort.Slice(pdbs, func(i, j int) bool { return pdbs[i].Name < pdbs[j].Name })\n"
            "\t\treturn pdbs, err\n"
        ),
        # Of nodes that are equally good to preempt on.
        "\tif len(scoreFuncs) == 0 {\n": "\tsort.Strings(allCandidates)\n\tif len(scoreFuncs) == 0 {\n",
    },
}

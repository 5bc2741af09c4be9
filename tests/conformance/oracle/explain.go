package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// explainFilters says of every node what the filters say of it, and returns the feasible ones.
func explainFilters(
	ctx context.Context, profile framework.Framework, pod *v1.Pod, said *verdict,
) ([]fwk.NodeInfo, fwk.CycleState) {
	state := framework.NewCycleState()
	allowed, rejection, choosers := profile.RunPreFilterPlugins(ctx, state, pod)
	// kube-scheduler says this where no node is found; we say it of a node whatever becomes of the others.
	leftOut := fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(choosers))
	nodes, _ := profile.SnapshotSharedLister().NodeInfos().List()
	feasible := []fwk.NodeInfo{}
	for _, node := range nodes {
		status := rejection
		switch {
		case !rejection.IsSuccess():
		case !allowed.AllNodes() && !allowed.NodeNames.Has(node.Node().Name):
			status = fwk.NewStatus(fwk.UnschedulableAndUnresolvable, leftOut).WithPlugin(cutOff)
		default:
			status = profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, node)
		}
		if status.IsSuccess() {
			said.Nodes[node.Node().Name] = nodeVerdict{Code: fwk.Success.String()}
			feasible = append(feasible, node)
		} else {
			said.Nodes[node.Node().Name] = rejected(status)
		}
	}
	return feasible, state
}

// explainMisfit takes the nodes' statuses from the diagnosis, which is what the message and PostFilter are made from.
func explainMisfit(profile framework.Framework, misfit *framework.FitError, said *verdict) {
	explicit := misfit.Diagnosis.NodeToStatus
	nodes, _ := profile.SnapshotSharedLister().NodeInfos().List()
	for _, node := range nodes {
		status := explicit.Get(node.Node().Name)
		answer := rejected(status)
		if answer.Plugin == "" {
			answer.Plugin = cutOff
		}
		said.Nodes[node.Node().Name] = answer
	}
}

// explainScores scores every feasible node, also where kube-scheduler would not because there is only one.
func explainScores(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, said *verdict,
) {
	scored, status := score(ctx, profile, state, pod, feasible)
	if !status.IsSuccess() || len(scored) == 0 {
		return // one feasible node is taken unscored, and then a failing Score plugin goes unnoticed
	}
	highest := slices.MaxFunc(scored, func(a, b fwk.NodePluginScores) int { return cmp.Compare(a.TotalScore, b.TotalScore) })
	for _, node := range scored {
		answer := nodeVerdict{Code: fwk.Success.String(), Scores: map[string]int64{}, Total: &node.TotalScore}
		for _, plugin := range node.Scores {
			answer.Scores[plugin.Name] = plugin.Score
		}
		said.Nodes[node.Name] = answer
		if node.TotalScore == highest.TotalScore {
			said.Best = append(said.Best, node.Name)
		}
	}
	slices.Sort(said.Best)
}

func score(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo,
) ([]fwk.NodePluginScores, *fwk.Status) {
	if !profile.HasScorePlugins() {
		equal := []fwk.NodePluginScores{}
		for _, node := range feasible {
			equal = append(equal, fwk.NodePluginScores{Name: node.Node().Name, TotalScore: 1})
		}
		return equal, nil
	}
	if status := profile.RunPreScorePlugins(ctx, state, pod, feasible); !status.IsSuccess() {
		return nil, status
	}
	return profile.RunScorePlugins(ctx, state, pod, feasible)
}

func rejected(status *fwk.Status) nodeVerdict {
	// NodeResourcesFit walks a map, so the order of its reasons means nothing.
	reasons := slices.Sorted(slices.Values(status.Reasons()))
	return nodeVerdict{Code: status.Code().String(), Plugin: status.Plugin(), Reasons: reasons}
}

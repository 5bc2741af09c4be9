package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// explainClaims adds which devices the claims of the pod would get on each feasible node.
func explainClaims(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, said *verdict,
) error {
	reserver := claimReserver(profile)
	if reserver == nil || len(pod.Spec.ResourceClaims) == 0 {
		return nil
	}
	claims := profile.SharedDRAManager().ResourceClaims()
	all, err := claims.List()
	if err != nil {
		return err
	}
	for _, node := range feasible {
		name := node.Node().Name
		if status := reserver.Reserve(ctx, state, pod, name); !status.IsSuccess() {
			continue // the profile leaves Filter out
		}
		answer := said.Nodes[name]
		answer.Claims = map[string]*resourceapi.AllocationResult{}
		for _, claim := range all {
			if allocation := claims.GetPendingAllocation(claim.UID); allocation != nil {
				answer.Claims[claim.Namespace+"/"+claim.Name] = allocation
				claims.MaybeRemoveClaimPendingAllocation(claim.UID, true)
			}
		}
		said.Nodes[name] = answer
	}
	return nil
}

// claimReserver finds the plugin among those that have a PreEnqueue: the framework does not show its Reserve plugins.
func claimReserver(profile framework.Framework) fwk.ReservePlugin {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if reserver, ok := plugin.(fwk.ReservePlugin); ok && plugin.Name() == names.DynamicResources {
			return reserver
		}
	}
	return nil
}

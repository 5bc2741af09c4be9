package main

import (
	"context"
	"reflect"
	"unsafe"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// explainClaims adds which devices the claims of the pod would get on each feasible node, and what they take of it.
func explainClaims(
	ctx context.Context, profile framework.Framework, state fwk.CycleState, pod *v1.Pod, feasible []fwk.NodeInfo, said *verdict,
) error {
	reserver := claimReserver(profile)
	if reserver == nil {
		return nil
	}
	for _, node := range feasible {
		explainExtended(state, node.Node().Name, said)
	}
	if len(pod.Spec.ResourceClaims) == 0 {
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
		answer.Amounts = dynamicresources.ExtractPodNodeAllocatableResourceClaimStatus(klog.FromContext(ctx), state, name)
		answer.Claims = map[string]*resourceapi.AllocationResult{}
		for _, claim := range all {
			if allocation := claims.GetPendingAllocation(claim.UID); allocation != nil {
				answer.Claims[claim.Namespace+"/"+claim.Name] = allocation
				claims.MaybeRemoveClaimPendingAllocation(claim.UID, true)
			}
		}
		reserver.Unreserve(ctx, state, pod, name) // the claim for extended resources is in no list
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

// explainExtended adds what the claim for the pod's extended resources would be on a feasible node.
//
// That claim is in no list, and the plugin's state has no exported fields, so they are read by their names.
func explainExtended(state fwk.CycleState, node string, said *verdict) {
	data, err := state.Read(names.DynamicResources)
	if err != nil {
		return
	}
	found := reflect.ValueOf(data).Elem().FieldByName("nodeAllocations").MapIndex(reflect.ValueOf(node))
	if !found.IsValid() {
		return
	}
	claim := (*resourceapi.ResourceClaim)(found.FieldByName("extendedResourceClaim").UnsafePointer())
	if claim == nil || len(claim.Spec.Devices.Requests) == 0 {
		return
	}
	results := found.FieldByName("allocationResults")
	allocations := unsafe.Slice((*resourceapi.AllocationResult)(results.UnsafePointer()), results.Len())
	written := found.FieldByName("containerResourceRequestMappings")
	mappings := unsafe.Slice((*v1.ContainerExtendedResourceRequest)(written.UnsafePointer()), written.Len())
	answer := said.Nodes[node]
	answer.Extended = &extendedVerdict{
		Requests: claim.Spec.Devices.Requests, Mappings: mappings, Allocation: &allocations[len(allocations)-1],
	}
	said.Nodes[node] = answer
}

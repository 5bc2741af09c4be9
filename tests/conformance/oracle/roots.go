package main

import (
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	compositeapi "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// root is the group that is tried: a PodGroup, or the CompositePodGroup that its tree begins with.
type root struct {
	types.NamespacedName
	isComposite bool
}

// rootOf is the group that the tree of a PodGroup begins with; the PodGroup itself if there is no such tree.
func rootOf(objects []runtime.Object, group types.NamespacedName) root {
	parents := map[root]*string{}
	for _, object := range objects {
		switch object := object.(type) {
		case *schedulingapi.PodGroup:
			parents[rootNamed(object, false)] = object.Spec.ParentCompositePodGroupName
		case *compositeapi.CompositePodGroup:
			parents[rootNamed(object, true)] = object.Spec.ParentCompositePodGroupName
		}
	}
	own := root{NamespacedName: group}
	if !utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		return own
	}
	at := own
	for range len(parents) + 1 { // more are a cycle
		parent, there := parents[at]
		if !there {
			return own
		}
		if parent == nil {
			return at
		}
		at = root{types.NamespacedName{Namespace: group.Namespace, Name: *parent}, true}
	}
	return own
}

func rootNamed(object metav1.Object, isComposite bool) root {
	return root{types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}, isComposite}
}

// scheduleGroup runs the cycle of a root, unless one of its pods keeps it out of the queue.
func scheduleGroup(ctx context.Context, own *cluster, top root, members []*v1.Pod, said *groupVerdict) error {
	if len(members) == 0 || len(said.Gated) > 0 {
		return nil
	}
	incomplete := own.SchedulingQueue.IncompletePodGroupPodsPods()
	for _, pod := range members {
		if slices.ContainsFunc(incomplete, func(each *v1.Pod) bool { return each.UID == pod.UID }) {
			said.Gated[pod.Name] = "incomplete"
		}
	}
	if len(said.Gated) > 0 {
		return nil
	}
	kind := fwk.PodGroupKeyType
	if top.isComposite {
		kind = fwk.CompositePodGroupKeyType
	}
	info, found := own.SchedulingQueue.GetPodGroup(top.Name, top.Namespace, kind)
	if !found || info.Gated() {
		return fmt.Errorf("%s is not in the queue", top)
	}
	own.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		for {
			popped, err := own.SchedulingQueue.Pop(logger)
			if err != nil || popped == nil {
				return popped, err
			}
			group, ok := popped.(*framework.QueuedPodGroupInfo)
			if ok && group.GetType() == kind && group.GetNamespace() == top.Namespace && group.GetName() == top.Name {
				return popped, nil
			}
		}
	}
	own.ScheduleOne(ctx)
	return nil
}

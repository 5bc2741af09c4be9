//go:build v1_36

// What the oracle needs of kube-scheduler 1.36 that is called otherwise in 1.37: v1_37.go has the same names.
package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1alpha2"
	apioperation "k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulingv1alpha2 "k8s.io/kubernetes/pkg/apis/scheduling/v1alpha2"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// knowsAll is whether it knows all kinds and fields in cases.
const knowsAll = false

type podGroup = schedulingapi.PodGroup

const scheduledCondition = schedulingapi.PodGroupScheduled

// laterActions are updates that only 1.37 tells apart.
var laterActions = []action{}

//go:linkname flushBackoff k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoff(queue *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushLeftover k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulablePodsLeftover
func flushLeftover(queue *internalqueue.PriorityQueue, logger klog.Logger)

func newInformerFactory(client clientset.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0)
}

func informPodGroups(factory informers.SharedInformerFactory) {
	factory.Scheduling().V1alpha2().PodGroups().Informer()
}

func getPodGroup(ctx context.Context, client clientset.Interface, name types.NamespacedName) (*podGroup, error) {
	return client.SchedulingV1alpha2().PodGroups(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
}

// objectToGroup validates with the feature gates for all fields.
func objectToGroup(ctx context.Context, object runtime.Object) []string {
	group, ok := object.(*podGroup)
	if !ok {
		return nil
	}
	gates := []string{string(features.TopologyAwareWorkloadScheduling), string(features.WorkloadAwarePreemption)}
	create := apioperation.Operation{Type: apioperation.Create, Options: gates}
	return texts(group.Name, schedulingv1alpha2.Validate_PodGroup(ctx, create, nil, group, nil))
}

// rootOf is the group itself: none consists of groups.
func rootOf(_ []runtime.Object, group types.NamespacedName) root {
	return root{NamespacedName: group}
}

func podChanges(newer, older *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(newer, older)
}

func popPod(queue *internalqueue.PriorityQueue, logger klog.Logger) (*framework.QueuedPodInfo, error) {
	return queue.Pop(logger)
}

func queuedPod(queue *internalqueue.PriorityQueue, pod *v1.Pod) (*framework.QueuedPodInfo, bool) {
	return queue.GetPod(pod.Name, pod.Namespace)
}

func deletePod(queue *internalqueue.PriorityQueue, _ klog.Logger, pod *v1.Pod) { queue.Delete(pod) }

func returnPod(queue *internalqueue.PriorityQueue, logger klog.Logger, info *framework.QueuedPodInfo) error {
	return queue.AddUnschedulableIfNotPresent(logger, info, queue.SchedulingCycle())
}

// preemptionFeatures are those that decide who are victims.
func preemptionFeatures() feature.Features {
	return feature.Features{}
}

// scheduleGroup runs the cycle of the first of these members: it takes the others along.
func scheduleGroup(ctx context.Context, own *cluster, _ root, members []*v1.Pod, _ *groupVerdict) error {
	var first *v1.Pod
	for _, pod := range members {
		if first == nil || corev1helpers.PodPriority(pod) > corev1helpers.PodPriority(first) {
			first = pod
		}
	}
	if first == nil {
		return nil
	}
	var missed error
	own.NextPod = func(logger klog.Logger) (*framework.QueuedPodInfo, error) {
		info := own.SchedulingQueue.PopSpecificPod(logger, first)
		if info == nil {
			missed = fmt.Errorf("%s is not in the queue", first.Name)
		}
		return info, nil
	}
	own.ScheduleOne(ctx)
	return missed
}

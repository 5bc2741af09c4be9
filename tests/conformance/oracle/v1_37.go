//go:build v1_37

// What the oracle needs of kube-scheduler 1.37 that is called otherwise in 1.36: v1_36.go has the same names.
package main

import (
	"context"
	"fmt"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apioperation "k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulingv1beta1 "k8s.io/kubernetes/pkg/apis/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// knowsAll is whether it knows all kinds and fields in cases.
const knowsAll = true

type podGroup = schedulingapi.PodGroup

const scheduledCondition = schedulingapi.PodGroupInitiallyScheduled

// laterActions are updates that 1.36 does not tell apart.
var laterActions = []action{
	{"UpdateNodePreemptionPolicy", fwk.UpdateNodePreemptionPolicy},
	{"UpdatePodScaleUp", fwk.UpdatePodScaleUp},
}

//go:linkname flushBackoff k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoff(queue *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushLeftover k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func flushLeftover(queue *internalqueue.PriorityQueue, logger klog.Logger)

func newInformerFactory(client clientset.Interface) informers.SharedInformerFactory {
	return scheduler.NewInformerFactory(client, 0, nil)
}

func informPodGroups(factory informers.SharedInformerFactory) {
	factory.Scheduling().V1beta1().PodGroups().Informer()
}

func getPodGroup(ctx context.Context, client clientset.Interface, name types.NamespacedName) (*podGroup, error) {
	return client.SchedulingV1beta1().PodGroups(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
}

// validatePodGroup does it with the feature gates for all fields.
func validatePodGroup(ctx context.Context, group *podGroup) field.ErrorList {
	gates := map[string]bool{
		string(features.TopologyAwareWorkloadScheduling): true,
		string(features.CompositePodGroup):               false,
		string(features.PodGroupPreemptionPolicy):        true,
	}
	create := apioperation.Operation{Type: apioperation.Create, Options: gates}
	return schedulingv1beta1.Validate_PodGroup(ctx, create, nil, group, nil)
}

// podChanges is what an update of a pod is to itself.
func podChanges(newer, older *v1.Pod) []fwk.ClusterEvent {
	return framework.PodSchedulingPropertiesChange(newer, older, true)
}

func popPod(queue *internalqueue.PriorityQueue, logger klog.Logger) (*framework.QueuedPodInfo, error) {
	entity, err := queue.Pop(logger)
	if err != nil {
		return nil, err
	}
	info, ok := entity.(*framework.QueuedPodInfo)
	if !ok {
		return nil, fmt.Errorf("unexpected entity %T", entity)
	}
	return info, nil
}

func queuedPod(queue *internalqueue.PriorityQueue, pod *v1.Pod) (*framework.QueuedPodInfo, bool) {
	return queue.GetPod(pod.Name, pod.Namespace, pod.Spec.SchedulingGroup)
}

func deletePod(queue *internalqueue.PriorityQueue, logger klog.Logger, pod *v1.Pod) {
	queue.Delete(logger, pod)
}

func returnPod(queue *internalqueue.PriorityQueue, logger klog.Logger, info *framework.QueuedPodInfo) error {
	return queue.AddUnschedulablePodIfNotPresent(logger, info, queue.SchedulingCycle())
}

// preemptionFeatures are those that decide who are victims.
func preemptionFeatures() feature.Features {
	return feature.Features{EnableGenericWorkload: utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload)}
}

// scheduleGroup runs the cycle of a group, unless one of its pods keeps it out of the queue.
func scheduleGroup(
	ctx context.Context, own *cluster, group types.NamespacedName, members []*v1.Pod, said *groupVerdict,
) error {
	if len(members) == 0 || len(said.Gated) > 0 {
		return nil
	}
	for _, pod := range own.SchedulingQueue.IncompletePodGroupPodsPods() {
		if groupOf(pod) == group {
			said.Gated[pod.Name] = "incomplete"
		}
	}
	if len(said.Gated) > 0 {
		return nil
	}
	info, found := own.SchedulingQueue.GetPodGroup(group.Name, group.Namespace, fwk.PodGroupKeyType)
	if !found || info.Gated() {
		return fmt.Errorf("%s is not in the queue", group)
	}
	own.NextEntity = func(logger klog.Logger) (framework.QueuedEntityInfo, error) {
		for {
			popped, err := own.SchedulingQueue.Pop(logger)
			if err != nil || popped == nil {
				return popped, err
			}
			if popped.Type() == fwk.PodGroupKeyType && popped.GetNamespace() == group.Namespace && popped.GetName() == group.Name {
				return popped, nil
			}
		}
	}
	own.ScheduleOne(ctx)
	return nil
}

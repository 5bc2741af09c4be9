//go:build v1_37

// What the oracle needs of kube-scheduler 1.37 that is called otherwise in 1.36: v1_36.go has the same names.
package main

import (
	"context"
	"fmt"
	"slices"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	compositeapi "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apioperation "k8s.io/apimachinery/pkg/api/operation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	schedulingv1alpha3 "k8s.io/kubernetes/pkg/apis/scheduling/v1alpha3"
	schedulingv1beta1 "k8s.io/kubernetes/pkg/apis/scheduling/v1beta1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
)

// knowsAll is whether it knows all kinds and fields in cases.
const knowsAll = true

type (
	podGroup          = schedulingapi.PodGroup
	compositePodGroup = compositeapi.CompositePodGroup
)

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
	if utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup) {
		factory.Scheduling().V1alpha3().CompositePodGroups().Informer()
	}
}

func getPodGroup(ctx context.Context, client clientset.Interface, name types.NamespacedName) (*podGroup, error) {
	return client.SchedulingV1beta1().PodGroups(name.Namespace).Get(ctx, name.Name, metav1.GetOptions{})
}

// rootOf is the group that the tree of a PodGroup begins with; the PodGroup itself if there is no such tree.
func rootOf(objects []runtime.Object, group types.NamespacedName) root {
	parents := map[root]*string{}
	for _, object := range objects {
		switch object := object.(type) {
		case *podGroup:
			parents[rootNamed(object, false)] = object.Spec.ParentCompositePodGroupName
		case *compositePodGroup:
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

// objectToGroup validates with the feature gates for all fields.
func objectToGroup(ctx context.Context, object runtime.Object) []string {
	gates := map[string]bool{
		string(features.TopologyAwareWorkloadScheduling): true,
		string(features.CompositePodGroup):               true,
		string(features.PodGroupPreemptionPolicy):        true,
	}
	create := apioperation.Operation{Type: apioperation.Create, Options: gates}
	switch object := object.(type) {
	case *podGroup:
		return texts(object.Name, schedulingv1beta1.Validate_PodGroup(ctx, create, nil, object, nil))
	case *compositePodGroup:
		return texts(object.Name, schedulingv1alpha3.Validate_CompositePodGroup(ctx, create, nil, object, nil))
	}
	return nil
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
	return feature.Features{
		EnableGenericWorkload:   utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload),
		EnableCompositePodGroup: utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup),
	}
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

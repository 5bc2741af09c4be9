package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// witnessKey is where the edited kube-scheduler (../edits.py) looks in its context for the one whom it tells what it
// keeps to itself otherwise. A build without the edits tells nothing.
const witnessKey = "pod group witness"

// groupVerdict is what one pod group cycle makes of one root.
type groupVerdict struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Gated has why pods are kept out of the queue; the others are the members, if there are any.
	Gated map[string]string `json:"gated"`
	// Code is empty if the cycle ends before the algorithm.
	Code                string            `json:"code"`
	Message             string            `json:"message"`
	WaitingOnPreemption bool              `json:"waitingOnPreemption"`
	Placement           string            `json:"placement"`
	Members             []memberVerdict   `json:"members"`
	Victims             []string          `json:"victims"`
	Condition           *conditionVerdict `json:"condition"`
	// Parts has the PodGroups of a tree with pods that wait.
	Parts map[string]*partVerdict `json:"parts,omitempty"`
}

// partVerdict is what becomes of a PodGroup that is part of a tree.
type partVerdict struct {
	Code      string            `json:"code"`
	Message   string            `json:"message"`
	Condition *conditionVerdict `json:"condition"`
}

// memberVerdict has a node, or what a pod that goes back to the queue is told.
type memberVerdict struct {
	Name    string `json:"name"`
	Node    string `json:"node,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// UnschedulablePlugins and PendingPlugins decide in kube-scheduler's queue who is tried again when.
	UnschedulablePlugins []string `json:"unschedulablePlugins,omitzero"`
	PendingPlugins       []string `json:"pendingPlugins,omitzero"`
	// NominatedNode is null if the nomination stays as it is, and "" if it is taken away.
	NominatedNode *string `json:"nominatedNode"`
}

type conditionVerdict struct {
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// enableGates turns these feature gates on. Preemption is awaited: its order must not depend on goroutines.
func enableGates(names []string) error {
	wanted := map[string]bool{"SchedulerAsyncPreemption": false}
	for _, name := range names {
		wanted[name] = true
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(wanted)
}

// judgeGroups runs a pod group cycle for every root with pending pods, each on the cluster as given.
func judgeGroups(ctx context.Context, c testCase) result {
	groups, err := groupVerdicts(ctx, c)
	if err != nil {
		return result{Name: c.Name, Error: err.Error(), Pods: []verdict{}}
	}
	return result{Name: c.Name, Pods: []verdict{}, Groups: groups}
}

func groupVerdicts(ctx context.Context, c testCase) ([]groupVerdict, error) {
	config, err := loadConfig(c.Config)
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(c.Objects)
	if err != nil {
		return nil, err
	}
	trees := map[root][]*v1.Pod{}
	for _, object := range objects {
		if pod, pending := isPending(object); pending && pod.Spec.SchedulingGroup != nil {
			top := rootOf(objects, groupOf(pod))
			trees[top] = append(trees[top], pod)
		}
	}
	sorted := slices.SortedFunc(maps.Keys(trees), func(a, b root) int { return cmp.Compare(a.String(), b.String()) })
	verdicts := []groupVerdict{}
	for _, top := range sorted {
		said, err := judgeGroup(ctx, config, objects, top, trees[top])
		if err != nil {
			return nil, fmt.Errorf("pod group %s: %w", top, err)
		}
		verdicts = append(verdicts, said)
	}
	return verdicts, nil
}

func groupOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: *pod.Spec.SchedulingGroup.PodGroupName}
}

// judgeGroup starts a scheduler of its own: the cycle evicts pods and changes what is nominated.
func judgeGroup(
	ctx context.Context, config *kubeconfig.KubeSchedulerConfiguration, objects []runtime.Object, top root, pods []*v1.Pod,
) (groupVerdict, error) {
	said := groupVerdict{
		Namespace: top.Namespace, Name: top.Name, Gated: map[string]string{}, Members: []memberVerdict{}, Victims: []string{},
		Parts: map[string]*partVerdict{},
	}
	for _, pod := range pods {
		if group := groupOf(pod); top.isComposite {
			said.Parts[group.Name] = &partVerdict{}
		}
	}
	own, err := newCluster(ctx, config, objects)
	if err != nil {
		return said, err
	}
	defer own.close()
	members := membersInQueue(ctx, own, pods, &said)
	own.FailureHandler = said.failed
	missed := scheduleGroup(context.WithValue(ctx, witnessKey, &said), own, top, members, &said)
	slices.SortFunc(said.Members, func(a, b memberVerdict) int { return cmp.Compare(a.Name, b.Name) })
	said.Victims = own.evicted()
	if !top.isComposite {
		said.Condition = conditionOf(ctx, own, top.NamespacedName)
	}
	for name, part := range said.Parts {
		part.Condition = conditionOf(ctx, own, types.NamespacedName{Namespace: top.Namespace, Name: name})
	}
	return said, missed
}

// membersInQueue says which of these pods are kept out of the queue, and returns the others.
func membersInQueue(ctx context.Context, c *cluster, pods []*v1.Pod, said *groupVerdict) []*v1.Pod {
	var members []*v1.Pod
	for _, pod := range pods {
		if c.Profiles[pod.Spec.SchedulerName] == nil {
			continue
		}
		if held := holder(ctx, c.Profiles[pod.Spec.SchedulerName], pod); held != "" {
			said.Gated[pod.Name] = held
		} else {
			members = append(members, pod)
		}
	}
	return members
}

func holder(ctx context.Context, profile framework.Framework, pod *v1.Pod) string {
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			return plugin.Name() + ": " + status.Message()
		}
	}
	return ""
}

// Decided is called with what the pod group algorithm ends with.
func (said *groupVerdict) Decided(status *fwk.Status, waitingOnPreemption bool, placement string) {
	said.Code = status.Code().String()
	said.Message = status.Message()
	said.WaitingOnPreemption = waitingOnPreemption
	if status.IsSuccess() {
		said.Placement = placement // of a group that is not placed it is the first one tried
	}
}

// DecidedPart is called with what it ends with for each group below the root.
func (said *groupVerdict) DecidedPart(name string, status *fwk.Status) {
	if part := said.Parts[name]; part != nil {
		part.Code = status.Code().String()
		part.Message = status.Message()
	}
}

// Bound is called instead of the binding cycle.
func (said *groupVerdict) Bound(pod *v1.Pod, node string) {
	said.Members = append(said.Members, memberVerdict{Name: pod.Name, Node: node})
}

// failed is the scheduler's FailureHandler; it reads of the status what that reads.
func (said *groupVerdict) failed(
	_ context.Context, _ framework.Framework, info *framework.QueuedPodInfo, status *fwk.Status, nomination *fwk.NominatingInfo, _ time.Time,
) {
	told := memberVerdict{
		Name: info.Pod.Name, Reason: v1.PodReasonSchedulerError, Message: status.Message(),
		UnschedulablePlugins: []string{}, PendingPlugins: []string{},
	}
	if status.IsRejected() {
		told.Reason = v1.PodReasonUnschedulable
	}
	if misfit, ok := status.AsError().(*framework.FitError); ok {
		told.UnschedulablePlugins = sets.List(misfit.Diagnosis.UnschedulablePlugins)
		told.PendingPlugins = sets.List(misfit.Diagnosis.PendingPlugins)
	}
	if nomination.Mode() == fwk.ModeOverride {
		told.NominatedNode = &nomination.NominatedNodeName
	}
	said.Members = append(said.Members, told)
}

func conditionOf(ctx context.Context, c *cluster, group types.NamespacedName) *conditionVerdict {
	found, err := c.client.SchedulingV1beta1().PodGroups(group.Namespace).Get(ctx, group.Name, metav1.GetOptions{})
	if err != nil {
		return nil // without a PodGroup there is nothing to write to
	}
	condition := apimeta.FindStatusCondition(found.Status.Conditions, schedulingapi.PodGroupInitiallyScheduled)
	if condition == nil {
		return nil
	}
	return &conditionVerdict{string(condition.Status), condition.Reason, condition.Message}
}

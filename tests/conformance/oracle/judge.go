package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// cutOff is the plugin name we give a node that a PreFilter result left out; kube-scheduler gives it none.
const cutOff = "PreFilterResult"

// judge asks for every pending pod alone: each sees the cluster of the case, not the placement of the pod before it.
func judge(ctx context.Context, c testCase) result {
	pods, err := judgePods(ctx, c)
	if err != nil {
		return result{Name: c.Name, Error: err.Error(), Pods: []verdict{}}
	}
	return result{Name: c.Name, Pods: pods}
}

func judgePods(ctx context.Context, c testCase) ([]verdict, error) {
	config, err := loadConfig(c.Config)
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(c.Objects)
	if err != nil {
		return nil, err
	}
	shared, err := newCluster(ctx, config, objects)
	if err != nil {
		return nil, err
	}
	defer shared.close()
	verdicts := []verdict{}
	for _, object := range objects {
		pod, pending := isPending(object)
		if !pending || shared.Profiles[pod.Spec.SchedulerName] == nil {
			continue
		}
		said, err := judgePod(ctx, shared, config, objects, pod)
		if err != nil {
			return nil, fmt.Errorf("pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		verdicts = append(verdicts, said)
	}
	return verdicts, nil
}

func judgePod(
	ctx context.Context, shared *cluster, config *kubeconfig.KubeSchedulerConfiguration, objects []runtime.Object, pod *v1.Pod,
) (verdict, error) {
	profile := shared.Profiles[pod.Spec.SchedulerName]
	said := verdict{
		Namespace: pod.Namespace, Name: pod.Name, Victims: []string{}, Best: []string{}, Nodes: map[string]nodeVerdict{},
	}
	for _, plugin := range profile.PreEnqueuePlugins() {
		if status := plugin.PreEnqueue(ctx, pod); !status.IsSuccess() {
			said.Gated = plugin.Name()
			return said, nil
		}
	}
	if err := shared.refreshSnapshot(ctx, profile); err != nil {
		return said, err
	}
	err := schedule(ctx, shared, pod, &said)
	var misfit *framework.FitError
	if !errors.As(err, &misfit) {
		return said, err
	}
	if !profile.HasPostFilterPlugins() {
		return said, nil
	}
	// PostFilter evicts, so it gets a cluster that nobody else will look at.
	own, err := newCluster(ctx, config, objects)
	if err != nil {
		return said, err
	}
	defer own.close()
	return said, postFilter(ctx, own, config, pod, &said)
}

// schedule runs kube-scheduler's algorithm for its answer, and the same extension points by hand for the details that
// the algorithm keeps to itself when it finds a node.
func schedule(ctx context.Context, c *cluster, pod *v1.Pod, said *verdict) error {
	profile := c.Profiles[pod.Spec.SchedulerName]
	info := queued(pod)
	chosen, scheduleErr := c.SchedulePod(ctx, profile, framework.NewCycleState(), info)
	feasible, state := explainFilters(ctx, profile, pod, said)
	var misfit *framework.FitError
	switch {
	case errors.As(scheduleErr, &misfit):
		said.Message = misfit.Error()
		explainMisfit(profile, misfit, said)
		return misfit
	case scheduleErr != nil:
		said.Message = scheduleErr.Error()
		return nil
	}
	explainScores(ctx, profile, state, pod, feasible, said)
	if err := explainClaims(ctx, profile, state, pod, feasible, said); err != nil {
		return err
	}
	// A nominated node that still fits ends the search: it wins whatever the others would have scored.
	if nominated := pod.Status.NominatedNodeName; nominated != "" && said.Nodes[nominated].Code == fwk.Success.String() {
		said.Best = []string{nominated}
	}
	if len(said.Best) == 0 {
		said.Best = []string{chosen.SuggestedHost}
	}
	if !slices.Contains(said.Best, chosen.SuggestedHost) {
		return fmt.Errorf("kube-scheduler chose %s, yet the best are %v", chosen.SuggestedHost, said.Best)
	}
	// The first of the best, not the one drawn by lot: the same case, the same answer.
	said.Node = &said.Best[0]
	return nil
}

// postFilter adds the nominated node, the victims and the PostFilter part of the message.
func postFilter(
	ctx context.Context, own *cluster, config *kubeconfig.KubeSchedulerConfiguration, pod *v1.Pod, said *verdict,
) error {
	profile := own.Profiles[pod.Spec.SchedulerName]
	if err := own.refreshSnapshot(ctx, profile); err != nil {
		return err
	}
	info := queued(pod)
	state := framework.NewCycleState()
	_, err := own.SchedulePod(ctx, profile, state, info)
	var misfit *framework.FitError
	if !errors.As(err, &misfit) {
		return fmt.Errorf("the second attempt ended differently: %w", err)
	}
	// A state of its own: what DynamicResources finds in a dry run would change what its PostFilter does.
	dryRun := framework.NewCycleState()
	if _, err := own.SchedulePod(ctx, profile, dryRun, info); !errors.As(err, &misfit) {
		return fmt.Errorf("the third attempt ended differently: %w", err)
	}
	choices, err := preemptions(ctx, profile, config, dryRun, pod, misfit.Diagnosis.NodeToStatus)
	if err != nil {
		return err
	}
	outcome, status := profile.RunPostFilterPlugins(ctx, state, pod, misfit.Diagnosis.NodeToStatus)
	misfit.Diagnosis.PostFilterMsg = status.Message()
	said.Message = misfit.Error()
	if outcome != nil && outcome.NominatingInfo != nil && outcome.NominatedNodeName != "" {
		said.NominatedNode = &outcome.NominatedNodeName
	}
	awaitEvictions(ctx, profile, pod)
	said.Victims = own.evicted()
	if said.NominatedNode != nil {
		said.Preemptions = choices
		return isAmong(choices, *said.NominatedNode, said.Victims)
	}
	return nil
}

// queued does as the scheduling queue does, which takes a pod whose affinity terms cannot be parsed.
func queued(pod *v1.Pod) *framework.QueuedPodInfo {
	info, _ := framework.NewPodInfo(pod)
	return &framework.QueuedPodInfo{PodInfo: info}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// draws is how often kube-scheduler is asked which of two candidates it takes: one that it never takes is worse.
const draws = 8

// choice is one of the preemptions among which kube-scheduler draws lots.
type choice struct {
	Node    string   `json:"node"`
	Victims []string `json:"victims"`
}

// preemptions says what kube-scheduler could choose, whatever the order in which it happens to look at the nodes.
func preemptions(
	ctx context.Context, profile framework.Framework, config *kubeconfig.KubeSchedulerConfiguration,
	state fwk.CycleState, pod *v1.Pod, statuses *framework.NodeToStatus,
) ([]choice, error) {
	enabled := slices.ContainsFunc(profile.ListPlugins().PostFilter.Enabled, func(each kubeconfig.Plugin) bool {
		return each.Name == names.DefaultPreemption
	})
	if !enabled {
		return nil, nil
	}
	features := feature.Features{
		EnableGenericWorkload:   utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload),
		EnableCompositePodGroup: utilfeature.DefaultFeatureGate.Enabled(features.CompositePodGroup),
	}
	plugin, err := defaultpreemption.New(ctx, preemptionArgs(config, profile.ProfileName()), profile, features)
	if err != nil {
		return nil, err
	}
	nodes, err := statuses.NodesForStatusCode(profile.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
	if err != nil || len(nodes) == 0 {
		return nil, err
	}
	budgets, err := profile.SharedInformerFactory().Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
	if err != nil {
		return nil, err
	}
	_, wanted := plugin.GetOffsetAndNumCandidates(int32(len(nodes)))
	all, _, _ := plugin.Evaluator.DryRunPreemption(ctx, state, pod, nodes, budgets, 0, int32(len(nodes)))
	return choicesAmong(ctx, plugin.Evaluator, all, int(wanted)), nil
}

// choicesAmong leaves out the candidates that cannot be the best of those that the search finds before it ends.
func choicesAmong(ctx context.Context, evaluator *preemption.Evaluator, all []preemption.Candidate, wanted int) []choice {
	var free, violating []preemption.Candidate
	for _, candidate := range all {
		if candidate.Victims().NumPDBViolations == 0 {
			free = append(free, candidate)
		} else {
			violating = append(violating, candidate)
		}
	}
	// The search ends with so many candidates, one of them free; until then it remembers that many that violate.
	pool, found := free, max(1, wanted-len(violating))
	if len(free) == 0 {
		pool, found = violating, wanted
	}
	found = min(found, len(pool))
	choices := []choice{}
	for _, candidate := range pool {
		better := 0
		for _, other := range pool {
			if other.Name() != candidate.Name() && isBetter(ctx, evaluator, other, candidate) {
				better++
			}
		}
		if len(pool)-better >= found {
			choices = append(choices, choice{candidate.Name(), evictable(candidate)})
		}
	}
	slices.SortFunc(choices, func(a, b choice) int { return cmp.Compare(a.Node, b.Node) })
	return choices
}

func isBetter(ctx context.Context, evaluator *preemption.Evaluator, a, b preemption.Candidate) bool {
	for range draws {
		// Both ways: of two equals in a map, Go begins with the one that was put in first seven times out of eight.
		for _, pair := range [][]preemption.Candidate{{a, b}, {b, a}} {
			if evaluator.SelectCandidate(ctx, pair).Name() == b.Name() {
				return false
			}
		}
	}
	return true
}

// evictable are the victims that are not on their way out already.
func evictable(candidate preemption.Candidate) []string {
	victims := []string{}
	for _, victim := range candidate.Victims().Pods {
		if victim.DeletionTimestamp == nil {
			victims = append(victims, victim.Namespace+"/"+victim.Name)
		}
	}
	slices.Sort(victims)
	return victims
}

// awaitEvictions returns when the evictions for a pod are under way: kube-scheduler leaves them to the background, and
// lets the pod into its queue again once the last victim goes.
func awaitEvictions(ctx context.Context, profile framework.Framework, pod *v1.Pod) {
	for _, plugin := range profile.PreEnqueuePlugins() {
		for plugin.Name() == names.DefaultPreemption && !plugin.PreEnqueue(ctx, pod).IsSuccess() {
			time.Sleep(time.Millisecond)
		}
	}
}

// isAmong says whether a preemption is one of the choices.
func isAmong(choices []choice, node string, victims []string) error {
	sorted := slices.Sorted(slices.Values(victims))
	for _, each := range choices {
		if each.Node == node && slices.Equal(each.Victims, sorted) {
			return nil
		}
	}
	return fmt.Errorf("kube-scheduler preempts %v on %s, yet the choices are %v", victims, node, choices)
}

func preemptionArgs(config *kubeconfig.KubeSchedulerConfiguration, profile string) *kubeconfig.DefaultPreemptionArgs {
	for _, each := range config.Profiles {
		if each.SchedulerName != profile {
			continue
		}
		for _, plugin := range each.PluginConfig {
			if args, ok := plugin.Args.(*kubeconfig.DefaultPreemptionArgs); ok {
				return args
			}
		}
	}
	return &kubeconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 10, MinCandidateNodesAbsolute: 100}
}

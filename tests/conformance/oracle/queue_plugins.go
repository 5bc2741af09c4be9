package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
)

// profileScript has a profile's plugins: those that refuse pods, with what may help, and those that gate.
type profileScript struct {
	Plugins map[string][]registration `json:"plugins"`
	Gates   []string                  `json:"gates"`
}

type registration struct {
	Event eventScript `json:"event"`
	Hint  bool        `json:"hint"`
}

// eventScript is {"resource": "Node", "actions": ["Add", "UpdateNodeTaint"]}.
type eventScript struct {
	fwk.ClusterEvent
}

func (e *eventScript) UnmarshalJSON(data []byte) error {
	var read struct {
		Resource string   `json:"resource"`
		Actions  []string `json:"actions"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return err
	}
	e.Resource = fwk.EventResource(read.Resource)
	for _, name := range read.Actions {
		action := actionNamed(name)
		if action == fwk.None {
			return fmt.Errorf("unknown action %q", name)
		}
		e.ActionType |= action
	}
	return nil
}

func (e *eventScript) decoded() fwk.ClusterEvent { return e.ClusterEvent }

func actionNamed(name string) fwk.ActionType {
	for action := fwk.Add; action < fwk.All; action <<= 1 {
		if action.String() == name {
			return action
		}
	}
	for _, action := range []fwk.ActionType{fwk.Update, fwk.All} {
		if action.String() == name {
			return action
		}
	}
	return fwk.None
}

func scriptedPlugins(profiles map[string]profileScript, open sets.Set[string]) (
	internalqueue.QueueingHintMapPerProfile, map[string]map[string]fwk.PreEnqueuePlugin, error,
) {
	hints := internalqueue.QueueingHintMapPerProfile{}
	gates := map[string]map[string]fwk.PreEnqueuePlugin{}
	for name, profile := range profiles {
		hints[name] = internalqueue.QueueingHintMap{}
		for plugin, registrations := range profile.Plugins {
			for _, each := range registrations {
				hint := alwaysQueue
				if each.Hint {
					hint = scriptedHint(plugin)
				}
				event := each.Event.decoded()
				hints[name][event] = append(hints[name][event],
					&internalqueue.QueueingHintFunction{PluginName: plugin, QueueingHintFn: hint})
			}
		}
		gates[name] = map[string]fwk.PreEnqueuePlugin{}
		for _, plugin := range profile.Gates {
			gates[name][plugin] = scriptedGate{plugin, open}
		}
	}
	return hints, gates, nil
}

func alwaysQueue(klog.Logger, *v1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.Queue, nil }

// scriptedHint answers what the label `hint.<plugin>` of the object says: queue, skip, error, or match, which is queue
// for pods with the same label `app`. Without the label it answers queue.
func scriptedHint(plugin string) fwk.QueueingHintFn {
	return func(_ klog.Logger, pod *v1.Pod, before, after any) (fwk.QueueingHint, error) {
		object, ok := after.(*v1.Pod)
		if !ok {
			object, ok = before.(*v1.Pod)
		}
		if !ok {
			return fwk.QueueSkip, errors.New("no object")
		}
		switch object.Labels["hint."+plugin] {
		case "skip":
			return fwk.QueueSkip, nil
		case "error":
			return fwk.QueueSkip, errors.New("scripted")
		case "match":
			if object.Labels["app"] != pod.Labels["app"] {
				return fwk.QueueSkip, nil
			}
		}
		return fwk.Queue, nil
	}
}

// scriptedGate holds pods whose label `gate` is its name, or, if it is called SchedulingGates, those that have any.
// It lets all pods pass while it is among the open ones.
type scriptedGate struct {
	name string
	open sets.Set[string]
}

func (g scriptedGate) Name() string { return g.name }

func (g scriptedGate) PreEnqueue(_ context.Context, pod *v1.Pod) *fwk.Status {
	holds := pod.Labels["gate"] == g.name
	if g.name == "SchedulingGates" {
		holds = len(pod.Spec.SchedulingGates) > 0
	}
	if holds && !g.open.Has(g.name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, strings.ToLower(g.name))
	}
	return nil
}

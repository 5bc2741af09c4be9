package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

// question is what happened to one object, and who waits. Its events are what the happening is said to be, whatever
// kube-scheduler would make of old and new: so every hint can be asked about every change.
type question struct {
	Pod    json.RawMessage `json:"pod"`
	Old    json.RawMessage `json:"old"`
	New    json.RawMessage `json:"new"`
	Events []event         `json:"events"`
}

// event is a fwk.ClusterEvent by names: an incoming one has one action.
type event struct {
	Resource string   `json:"resource"`
	Actions  []string `json:"actions"`
}

// hintResult is the answer to a case with questions, of its first profile.
type hintResult struct {
	// Registered has what each plugin registered for, in its order.
	Registered map[string][]event `json:"registered"`
	Answers    []hintAnswers      `json:"answers"`
}

// hintAnswers is the answer to one question.
type hintAnswers struct {
	// Hints are by plugin, a map from "event/registration" (their positions) to what the hint says.
	Hints map[string]map[string]string `json:"hints"`
	// Changes is what kube-scheduler makes of an update of a node or a pod.
	Changes []event `json:"changes"`
}

// action is a bit of fwk.ActionType; the names are those of its constants.
type action struct {
	name string
	bits fwk.ActionType
}

var actions = []action{
	{"UpdateNodePreemptionPolicy", fwk.UpdateNodePreemptionPolicy},
	{"UpdatePodScaleUp", fwk.UpdatePodScaleUp},
	{"Add", fwk.Add},
	{"Delete", fwk.Delete},
	{"UpdateNodeAllocatable", fwk.UpdateNodeAllocatable},
	{"UpdateNodeLabel", fwk.UpdateNodeLabel},
	{"UpdateNodeTaint", fwk.UpdateNodeTaint},
	{"UpdateNodeCondition", fwk.UpdateNodeCondition},
	{"UpdateNodeAnnotation", fwk.UpdateNodeAnnotation},
	{"UpdateNodeDeclaredFeature", fwk.UpdateNodeDeclaredFeature},
	{"UpdatePodLabel", fwk.UpdatePodLabel},
	{"UpdatePodScaleDown", fwk.UpdatePodScaleDown},
	{"UpdatePodToleration", fwk.UpdatePodToleration},
	{"UpdatePodSchedulingGatesEliminated", fwk.UpdatePodSchedulingGatesEliminated},
	{"UpdatePodGeneratedResourceClaim", fwk.UpdatePodGeneratedResourceClaim},
	// All of the updates at once; an incoming one is an update that is none of them.
	{"Update", fwk.Update},
}

// orHints answers cases that have questions about events itself, and leaves the others to `answer`.
func orHints(answer func(context.Context, testCase) result) func(context.Context, testCase) result {
	return func(ctx context.Context, c testCase) result {
		if c.Questions == nil {
			return answer(ctx, c)
		}
		found, err := askHints(ctx, c)
		if err != nil {
			return result{Name: c.Name, Error: err.Error(), Pods: []verdict{}}
		}
		return result{Name: c.Name, Pods: []verdict{}, Hints: found}
	}
}

func askHints(ctx context.Context, c testCase) (*hintResult, error) {
	config, err := loadConfig(c.Config)
	if err != nil {
		return nil, err
	}
	objects, err := decodeObjects(c.Objects)
	if err != nil {
		return nil, err
	}
	built, err := newCluster(ctx, config, objects)
	if err != nil {
		return nil, err
	}
	defer built.close()
	found := &hintResult{Registered: map[string][]event{}, Answers: []hintAnswers{}}
	registered := map[string][]fwk.ClusterEventWithHint{}
	for _, plugin := range built.Profiles[config.Profiles[0].SchedulerName].EnqueueExtensions() {
		events, err := plugin.EventsToRegister(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", plugin.Name(), err)
		}
		registered[plugin.Name()] = events
		found.Registered[plugin.Name()] = []event{}
		for _, each := range events {
			found.Registered[plugin.Name()] = append(found.Registered[plugin.Name()], named(each.Event))
		}
	}
	for i, q := range c.Questions {
		answers, err := q.ask(klog.FromContext(ctx), registered)
		if err != nil {
			return nil, fmt.Errorf("questions[%d]: %w", i, err)
		}
		found.Answers = append(found.Answers, answers)
	}
	return found, nil
}

func (q question) ask(logger klog.Logger, registered map[string][]fwk.ClusterEventWithHint) (hintAnswers, error) {
	found := hintAnswers{Hints: map[string]map[string]string{}, Changes: []event{}}
	object, err := decoded(q.Pod)
	if err != nil {
		return found, err
	}
	pod, ok := object.(*v1.Pod)
	if !ok {
		return found, fmt.Errorf("%T waits, not a pod", object)
	}
	older, err := decoded(q.Old)
	if err != nil {
		return found, err
	}
	newer, err := decoded(q.New)
	if err != nil {
		return found, err
	}
	for i, asked := range q.Events {
		incoming, err := asked.clusterEvent()
		if err != nil {
			return found, err
		}
		for plugin, events := range registered {
			for j, each := range events {
				if !framework.MatchClusterEvents(each.Event, incoming) {
					continue
				}
				if found.Hints[plugin] == nil {
					found.Hints[plugin] = map[string]string{}
				}
				found.Hints[plugin][fmt.Sprintf("%d/%d", i, j)] = hint(logger, each, pod, older, newer)
			}
		}
	}
	for _, change := range updateEvents(older, newer) {
		found.Changes = append(found.Changes, named(change))
	}
	return found, nil
}

// hint asks as the scheduling queue does: no hint function is a yes.
func hint(logger klog.Logger, registered fwk.ClusterEventWithHint, pod *v1.Pod, older, newer runtime.Object) string {
	if registered.QueueingHintFn == nil {
		return fwk.Queue.String()
	}
	// An interface that holds a nil is not nil: the hints look at the interface.
	var before, after any
	if older != nil {
		before = older
	}
	if newer != nil {
		after = newer
	}
	answer, err := registered.QueueingHintFn(logger, pod, before, after)
	if err != nil {
		return "error"
	}
	return answer.String()
}

func updateEvents(older, newer runtime.Object) []fwk.ClusterEvent {
	switch newer := newer.(type) {
	case *v1.Node:
		if older, ok := older.(*v1.Node); ok {
			return framework.NodeSchedulingPropertiesChange(newer, older)
		}
	case *v1.Pod:
		if older, ok := older.(*v1.Pod); ok {
			return framework.PodSchedulingPropertiesChange(newer, older, true)
		}
	}
	return nil
}

// decoded reads an object strictly; null is none.
func decoded(data json.RawMessage) (runtime.Object, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	object, _, err := strictDecoder(clientscheme.Scheme).Decode(data, nil, nil)
	return object, err
}

func (e event) clusterEvent() (fwk.ClusterEvent, error) {
	found := fwk.ClusterEvent{Resource: fwk.EventResource(e.Resource)}
	for _, name := range e.Actions {
		bits := fwk.None
		for _, each := range actions {
			if each.name == name {
				bits = each.bits
			}
		}
		if bits == fwk.None {
			return found, fmt.Errorf("unknown action %q", name)
		}
		found.ActionType |= bits
	}
	return found, nil
}

func named(e fwk.ClusterEvent) event {
	found := event{Resource: string(e.Resource), Actions: []string{}}
	whole := e.ActionType&fwk.Update == fwk.Update
	for _, each := range actions {
		update := each.bits&fwk.Update != 0
		if e.ActionType&each.bits == each.bits && !(whole && update && each.bits != fwk.Update) {
			found.Actions = append(found.Actions, each.name)
		}
	}
	return found
}

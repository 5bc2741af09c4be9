package main

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// testCase is one line of the input.
type testCase struct {
	Name    string            `json:"name"`
	Config  json.RawMessage   `json:"config"`
	Objects []json.RawMessage `json:"objects"`
	Queue   *queueScript      `json:"queue"`
	// Alone has pods judged one by one, with the feature gates for groups.
	Alone bool `json:"alone"`
	// Questions are about events, and instead of everything else.
	Questions []question `json:"questions"`
}

// result is one line of the output. Error is set when the case itself is unusable, and nothing else then.
type result struct {
	Name  string    `json:"name,omitempty"`
	Error string    `json:"error,omitempty"`
	Pods  []verdict `json:"pods"`
	// Steps are there in the answer to a script for the queue.
	Steps []map[string]string `json:"steps,omitempty"`
	// Groups are there in the answer of an oracle with feature gates for them.
	Groups []groupVerdict `json:"groups,omitempty"`
	// Hints are there in the answer to questions about events.
	Hints *hintResult `json:"hints,omitempty"`
}

// verdict is what kube-scheduler says of one pending pod.
type verdict struct {
	Namespace     string                 `json:"namespace"`
	Name          string                 `json:"name"`
	Gated         string                 `json:"gated,omitempty"`
	Node          *string                `json:"node"`
	NominatedNode *string                `json:"nominatedNode"`
	Victims       []string               `json:"victims"`
	Preemptions   []choice               `json:"preemptions,omitempty"`
	Message       string                 `json:"message"`
	Best          []string               `json:"best"`
	Nodes         map[string]nodeVerdict `json:"nodes"`
}

// nodeVerdict has scores where the node is feasible, a plugin and reasons where it is not.
type nodeVerdict struct {
	Code    string           `json:"code"`
	Plugin  string           `json:"plugin,omitempty"`
	Reasons []string         `json:"reasons,omitempty"`
	Scores  map[string]int64 `json:"scores,omitzero"`
	Total   *int64           `json:"total,omitempty"`
	// Claims has the devices that unallocated claims of the pod would get on a feasible node.
	Claims map[string]*resourceapi.AllocationResult `json:"claims,omitempty"`
	// Amounts has what the pod would take of the node by its devices.
	Amounts []v1.NodeAllocatableResourceClaimStatus `json:"amounts,omitempty"`
	// Extended is there if a claim would be made for extended resources.
	Extended *extendedVerdict `json:"extended,omitempty"`
}

// extendedVerdict is the claim that would be made for the extended resources of a pod on one node.
type extendedVerdict struct {
	Requests   []resourceapi.DeviceRequest           `json:"requests"`
	Mappings   []v1.ContainerExtendedResourceRequest `json:"mappings"`
	Allocation *resourceapi.AllocationResult         `json:"allocation"`
}

// decodeObjects reads the objects strictly, so that a misspelt field of a hand-written case is an error.
func decodeObjects(raw []json.RawMessage) ([]runtime.Object, error) {
	decoder := strictDecoder(clientscheme.Scheme)
	objects := make([]runtime.Object, 0, len(raw))
	for i, data := range raw {
		object, _, err := decoder.Decode(data, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("objects[%d]: %w", i, err)
		}
		if pod, ok := object.(*v1.Pod); ok {
			if pod.UID == "" {
				return nil, fmt.Errorf("objects[%d]: pod %s/%s has no uid", i, pod.Namespace, pod.Name)
			}
			// The scheduler's informer asks the API server to leave out finished pods; the fake one cannot.
			if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
				continue
			}
		}
		objects = append(objects, object)
	}
	return objects, nil
}

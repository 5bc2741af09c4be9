package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// An answersCase is what an extender has answered to a question.
type answersCase struct {
	Verb string `json:"verb"`
	Body []byte `json:"body"`
}

type victimsAnswer struct {
	// nil where the pod is.
	UIDs       []*string `json:"uids"`
	Violations int64     `json:"violations"`
}

// What a body means; only the fields of its verb are set.
type bodyAnswer struct {
	Error         string                    `json:"error"`
	Nodes         *[]string                 `json:"nodes"`
	NodeNames     *[]string                 `json:"nodeNames"`
	Failed        map[string]string         `json:"failed"`
	FailedForGood map[string]string         `json:"failedForGood"`
	Said          string                    `json:"said"`
	Scores        [][2]any                  `json:"scores"`
	Victims       map[string]*victimsAnswer `json:"victims"`
}

// readAnswers reads bodies one after the other, as extender.go (send) does.
func readAnswers(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var c answersCase
		if err := decoder.Decode(&c); err != nil {
			return err
		}
		if err := encoder.Encode(c.answer()); err != nil {
			return err
		}
	}
	return nil
}

func (c answersCase) answer() bodyAnswer {
	switch c.Verb {
	case "filter":
		return c.filter()
	case "prioritize":
		var result extenderv1.HostPriorityList
		if err := c.decode(&result); err != nil {
			return bodyAnswer{Error: err.Error()}
		}
		answer := bodyAnswer{Scores: [][2]any{}}
		for _, each := range result {
			answer.Scores = append(answer.Scores, [2]any{each.Host, each.Score})
		}
		return answer
	case "preempt":
		return c.preempt()
	default:
		var result extenderv1.ExtenderBindingResult
		if err := c.decode(&result); err != nil {
			return bodyAnswer{Error: err.Error()}
		}
		return bodyAnswer{Said: result.Error}
	}
}

func (c answersCase) filter() bodyAnswer {
	var result extenderv1.ExtenderFilterResult
	if err := c.decode(&result); err != nil {
		return bodyAnswer{Error: err.Error()}
	}
	answer := bodyAnswer{
		NodeNames: result.NodeNames, Failed: result.FailedNodes, FailedForGood: result.FailedAndUnresolvableNodes,
		Said: result.Error,
	}
	if result.Nodes != nil {
		names := []string{}
		for _, node := range result.Nodes.Items {
			names = append(names, node.Name)
		}
		answer.Nodes = &names
	}
	return answer
}

func (c answersCase) preempt() bodyAnswer {
	var result extenderv1.ExtenderPreemptionResult
	if err := c.decode(&result); err != nil {
		return bodyAnswer{Error: err.Error()}
	}
	answer := bodyAnswer{Victims: map[string]*victimsAnswer{}}
	for name, victims := range result.NodeNameToMetaVictims {
		if victims == nil {
			answer.Victims[name] = nil
			continue
		}
		found := &victimsAnswer{UIDs: []*string{}, Violations: victims.NumPDBViolations}
		for _, pod := range victims.Pods {
			if pod == nil {
				found.UIDs = append(found.UIDs, nil)
			} else {
				found.UIDs = append(found.UIDs, &pod.UID)
			}
		}
		answer.Victims[name] = found
	}
	return answer
}

func (c answersCase) decode(into any) error {
	return json.NewDecoder(bytes.NewReader(c.Body)).Decode(into)
}

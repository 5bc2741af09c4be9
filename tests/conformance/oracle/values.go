package main

import (
	"bufio"
	"encoding/json"
	"io"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// A valuesCase has texts and selectors that apimachinery is to read.
type valuesCase struct {
	Quantities    []string               `json:"quantities"`
	Durations     []string               `json:"durations"`
	Selectors     []metav1.LabelSelector `json:"selectors"`
	NodeSelectors []v1.NodeSelector      `json:"nodeSelectors"`
	Labels        []map[string]string    `json:"labels"`
}

type quantityAnswer struct {
	OK    bool  `json:"ok"`
	Value int64 `json:"value"`
	Milli int64 `json:"milli"`
	// Compared with the quantity before, if both can be read.
	Order int `json:"order"`
	// As an int64, if that is at hand.
	Whole *int64 `json:"whole"`
	// Units and thousandths of the sum of all so far, and of the largest of all so far.
	Sum     [2]int64 `json:"sum"`
	Largest [2]int64 `json:"largest"`
}

type selectorAnswer struct {
	Error   string `json:"error"`
	Matches []bool `json:"matches"`
}

type valuesAnswer struct {
	Quantities []quantityAnswer `json:"quantities"`
	// Nanoseconds; nil for what is no duration.
	Durations     []*int64         `json:"durations"`
	Selectors     []selectorAnswer `json:"selectors"`
	NodeSelectors []selectorAnswer `json:"nodeSelectors"`
}

// readValues answers cases one after the other.
func readValues(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var c valuesCase
		if err := decoder.Decode(&c); err != nil {
			return err
		}
		if err := encoder.Encode(c.answer()); err != nil {
			return err
		}
	}
	return nil
}

func (c valuesCase) answer() valuesAnswer {
	answer := valuesAnswer{Quantities: quantityAnswers(c.Quantities)}
	for _, text := range c.Durations {
		var nanoseconds *int64
		if d, err := time.ParseDuration(text); err == nil {
			n := d.Nanoseconds()
			nanoseconds = &n
		}
		answer.Durations = append(answer.Durations, nanoseconds)
	}
	for i := range c.Selectors {
		answer.Selectors = append(answer.Selectors, labelSelectorAnswer(&c.Selectors[i], c.Labels))
	}
	for i := range c.NodeSelectors {
		answer.NodeSelectors = append(answer.NodeSelectors, nodeSelectorAnswer(&c.NodeSelectors[i], c.Labels))
	}
	return answer
}

func quantityAnswers(texts []string) []quantityAnswer {
	var answers []quantityAnswer
	var before, sum, largest *resource.Quantity
	for _, text := range texts {
		quantity, err := resource.ParseQuantity(text)
		if err != nil {
			answers, before = append(answers, quantityAnswer{}), nil
			continue
		}
		answer := quantityAnswer{OK: true, Value: quantity.Value(), Milli: quantity.MilliValue()}
		if before != nil {
			// A copy: a comparison may turn a quantity into one of big numbers.
			compared := quantity.DeepCopy()
			answer.Order = compared.Cmp(before.DeepCopy())
		}
		if whole, ok := quantity.AsInt64(); ok {
			answer.Whole = &whole
		}
		// As AddResourceList and maxResourceList of component-helpers do.
		added, raised := quantity.DeepCopy(), quantity.DeepCopy()
		if sum == nil {
			sum = &added
		} else {
			sum.Add(added)
		}
		if largest == nil || raised.Cmp(*largest) > 0 {
			largest = &raised
		}
		answer.Sum = [2]int64{sum.Value(), sum.MilliValue()}
		answer.Largest = [2]int64{largest.Value(), largest.MilliValue()}
		answers, before = append(answers, answer), &quantity
	}
	return answers
}

func labelSelectorAnswer(selector *metav1.LabelSelector, objects []map[string]string) selectorAnswer {
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return selectorAnswer{Error: err.Error()}
	}
	var answer selectorAnswer
	for _, each := range objects {
		answer.Matches = append(answer.Matches, parsed.Matches(labels.Set(each)))
	}
	return answer
}

// nodeSelectorAnswer judges nodes of the name `n`.
func nodeSelectorAnswer(selector *v1.NodeSelector, objects []map[string]string) selectorAnswer {
	parsed := nodeaffinity.NewLazyErrorNodeSelector(selector)
	var answer selectorAnswer
	for _, each := range objects {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: each}}
		matches, err := parsed.Match(node)
		if err != nil {
			answer.Error = err.Error()
		}
		answer.Matches = append(answer.Matches, matches)
	}
	return answer
}

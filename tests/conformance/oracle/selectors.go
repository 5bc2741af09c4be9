package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// A selectorsCase has expressions, and a device that they are about.
type selectorsCase struct {
	Driver      string             `json:"driver"`
	Device      resourceapi.Device `json:"device"`
	Expressions []string           `json:"expressions"`
}

// expressionAnswer has an error, or whether the device matches.
type expressionAnswer struct {
	// Stored is whether an API server would store the expression.
	Stored  bool   `json:"stored"`
	Matches bool   `json:"matches"`
	Error   string `json:"error"`
}

// readExpressions answers cases one after the other, as the scheduler's plugin would.
func readExpressions(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var c selectorsCase
		if err := decoder.Decode(&c); err != nil {
			return err
		}
		if err := encoder.Encode(c.answers()); err != nil {
			return err
		}
	}
	return nil
}

func (c selectorsCase) answers() []expressionAnswer {
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	device := cel.Device{
		Driver: c.Driver, AllowMultipleAllocations: c.Device.AllowMultipleAllocations,
		Attributes: c.Device.Attributes, Capacity: c.Device.Capacity,
	}
	answers := []expressionAnswer{}
	for _, expression := range c.Expressions {
		compiled := compiler.CompileCELExpression(expression, cel.Options{})
		if compiled.Error != nil {
			answers = append(answers, expressionAnswer{Error: compiled.Error.Error()})
			continue
		}
		answer := expressionAnswer{Stored: compiled.MaxCost <= resourceapi.CELSelectorExpressionMaxCost}
		matches, _, err := compiled.DeviceMatches(context.Background(), device)
		if err != nil {
			answer.Error = err.Error()
		}
		answer.Matches = matches
		answers = append(answers, answer)
	}
	return answers
}

// The oracle reads cluster cases, one JSON document a line, and prints kube-scheduler's verdict on each, one a line and in
// the same order: for every pending pod and node what PreFilter, Filter, PreScore, Score and PostFilter say.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

func main() {
	verbose := flag.Bool("verbose", false, "let kube-scheduler log to stderr")
	validate := flag.Bool("validate", false, "say instead what the API server would hold against the objects")
	values := flag.Bool("values", false, "read texts and selectors instead, and say what they mean")
	configurations := flag.Bool("configurations", false, "read configuration files instead, and say what is in effect")
	gates := flag.Bool("feature-gates", false, "print the feature gates instead")
	selectors := flag.Bool("selectors", false, "read expressions about devices instead, and say what they are")
	enabled := flag.String("gates", "", "turn on these feature gates and say instead what becomes of pod groups")
	answers := flag.Bool("answers", false, "read answers of extenders instead, and say what they mean")
	// Most of a case is waiting for informers to notice that they are in sync.
	workers := flag.Int("workers", 32, "cases judged at a time")
	flag.Parse()
	if !*verbose {
		klog.SetLogger(klog.Logger{})
	}
	for _, other := range []struct {
		wanted bool
		do     func() error
	}{
		{*values, func() error { return readValues(os.Stdin, os.Stdout) }},
		{*answers, func() error { return readAnswers(os.Stdin, os.Stdout) }},
		{*selectors, func() error { return readExpressions(os.Stdin, os.Stdout) }},
		{*configurations, func() error { return judgeConfigurations(os.Stdin, os.Stdout) }},
		{*gates, func() error { return printFeatureGates(os.Stdout) }},
	} {
		if other.wanted {
			if err := other.do(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
	}
	answer := judge
	if *enabled != "" {
		if err := enableGates(strings.Split(*enabled, ",")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer = func(ctx context.Context, c testCase) result {
			if c.Alone {
				return judge(ctx, c)
			}
			return judgeGroups(ctx, c)
		}
	}
	if *validate {
		// What was stored while they were on is there still.
		if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{"DRAListTypeAttributes": true}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		answer = objections
	}
	if err := run(os.Stdin, os.Stdout, orHints(orQueue(answer)), *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run answers cases concurrently and prints the answers in order.
func run(in io.Reader, out io.Writer, answer func(context.Context, testCase) result, workers int) error {
	pending := make(chan chan result, workers)
	failed := make(chan error, 1)
	go func() {
		defer close(pending)
		decoder := json.NewDecoder(bufio.NewReader(in))
		for decoder.More() {
			var c testCase
			if err := decoder.Decode(&c); err != nil {
				failed <- err
				return
			}
			reply := make(chan result, 1)
			pending <- reply
			go func() { reply <- answer(context.Background(), c) }()
		}
		failed <- nil
	}()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for reply := range pending {
		if err := encoder.Encode(<-reply); err != nil {
			return err
		}
	}
	return <-failed
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes/fake"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	conversionv1 "k8s.io/kubernetes/pkg/scheduler/apis/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// A configurationCase has the text of a configuration file.
type configurationCase struct {
	Text string `json:"text"`
}

type configurationAnswer struct {
	// Why the file cannot be read.
	Unreadable string `json:"unreadable,omitempty"`
	// What validation holds against it.
	Invalid []fieldProblem `json:"invalid,omitempty"`
	// Why no scheduler can be made of it.
	Unbuildable string `json:"unbuildable,omitempty"`
	// What is in effect.
	Config *configv1.KubeSchedulerConfiguration `json:"config,omitempty"`
	// Profile, extension point, and its plugins in order with their weights.
	Plugins map[string]*kubeconfig.Plugins `json:"plugins,omitempty"`
}

type fieldProblem struct {
	// Empty if the problem names no field.
	Path    string `json:"path"`
	Message string `json:"message"`
}

// judgeConfigurations answers cases one after the other.
func judgeConfigurations(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for decoder.More() {
		var c configurationCase
		if err := decoder.Decode(&c); err != nil {
			return err
		}
		if err := encoder.Encode(c.answer()); err != nil {
			return err
		}
	}
	return nil
}

// answer does what `kube-scheduler --config` does before it asks the API server for anything.
func (c configurationCase) answer() configurationAnswer {
	object, kind, err := configscheme.Codecs.UniversalDecoder().Decode([]byte(c.Text), nil, nil)
	if err != nil {
		return configurationAnswer{Unreadable: err.Error()}
	}
	config, ok := object.(*kubeconfig.KubeSchedulerConfiguration)
	if !ok {
		return configurationAnswer{Unreadable: fmt.Sprintf("couldn't decode as KubeSchedulerConfiguration, got %s", kind)}
	}
	config.APIVersion = kind.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return configurationAnswer{Invalid: problemsOf(err)}
	}
	effective := &configv1.KubeSchedulerConfiguration{}
	if err := conversionv1.Convert_config_KubeSchedulerConfiguration_To_v1_KubeSchedulerConfiguration(config.DeepCopy(), effective, nil); err != nil {
		return configurationAnswer{Unreadable: err.Error()}
	}
	plugins, err := pluginsInEffect(config)
	if err != nil {
		return configurationAnswer{Unbuildable: err.Error()}
	}
	return configurationAnswer{Config: effective, Plugins: plugins}
}

func problemsOf(err utilerrors.Aggregate) []fieldProblem {
	problems := []fieldProblem{}
	for _, each := range utilerrors.Flatten(err).Errors() {
		var of *field.Error
		if errors.As(each, &of) {
			problems = append(problems, fieldProblem{Path: of.Field, Message: of.ErrorBody()})
		} else {
			problems = append(problems, fieldProblem{Message: each.Error()})
		}
	}
	return problems
}

func pluginsInEffect(config *kubeconfig.KubeSchedulerConfiguration) (map[string]*kubeconfig.Plugins, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fake.NewSimpleClientset()
	factory := scheduler.NewInformerFactory(client, 0, nil)
	sched, err := scheduler.New(ctx, client, factory, nil, silentRecorders(),
		scheduler.WithComponentConfigVersion(config.APIVersion),
		scheduler.WithProfiles(config.Profiles...),
		scheduler.WithPercentageOfNodesToScore(config.PercentageOfNodesToScore),
		scheduler.WithParallelism(config.Parallelism),
		scheduler.WithExtenders(config.Extenders...),
	)
	if err != nil {
		return nil, err
	}
	defer sched.SchedulingQueue.Close()
	plugins := map[string]*kubeconfig.Plugins{}
	for name, profile := range sched.Profiles {
		plugins[name] = profile.ListPlugins()
		_ = profile.Close()
	}
	return plugins, nil
}

type featureGate struct {
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
	Stage   string `json:"stage"`
}

// printFeatureGates prints every gate that kube-scheduler knows, with what it is in this version.
func printFeatureGates(out io.Writer) error {
	for _, add := range []func() error{
		func() error { return logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate) },
		func() error { return metricsfeatures.AddFeatureGates(utilfeature.DefaultMutableFeatureGate) },
	} {
		if err := add(); err != nil {
			return err
		}
	}
	gates := map[string]featureGate{}
	for name, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		gates[string(name)] = featureGate{spec.Default, spec.LockToDefault, string(spec.PreRelease)}
	}
	return json.NewEncoder(out).Encode(gates)
}

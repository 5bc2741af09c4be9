package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kubeconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	configscheme "k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

const defaultConfig = `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}`

// loadConfig decodes, defaults and validates as `kube-scheduler --config` does.
func loadConfig(data json.RawMessage) (*kubeconfig.KubeSchedulerConfiguration, error) {
	if len(data) == 0 || string(data) == "null" {
		data = json.RawMessage(defaultConfig)
	}
	object, kind, err := configscheme.Codecs.UniversalDecoder().Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	config, ok := object.(*kubeconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("config: is a %s", kind)
	}
	config.APIVersion = kind.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(config); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	judgeEveryNode(config)
	return config, nil
}

// judgeEveryNode turns off sampling: above 100 nodes the verdict would depend on where the search started.
func judgeEveryNode(config *kubeconfig.KubeSchedulerConfiguration) {
	all := int32(100)
	config.PercentageOfNodesToScore = &all
	for i := range config.Profiles {
		config.Profiles[i].PercentageOfNodesToScore = &all
	}
}

func strictDecoder(scheme *runtime.Scheme) runtime.Decoder {
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

package validation

import (
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
)

// recordInput appends what a test has validated to a file, as the text of a configuration file.
// What cannot be written as one, such as arguments of the wrong type, is left out.
func recordInput(object runtime.Object, plugin string) {
	whole, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		whole = withArguments(object, plugin)
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	text, err := runtime.Encode(scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion), whole.DeepCopy())
	if err != nil {
		return
	}
	file, err := os.OpenFile(os.Getenv("RECORD_CONFIGURATIONS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	if err := json.NewEncoder(file).Encode(string(text)); err != nil {
		panic(err)
	}
}

// withArguments is the default configuration with the arguments of one plugin.
func withArguments(arguments runtime.Object, plugin string) *config.KubeSchedulerConfiguration {
	text := `{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}`
	object, _, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		panic(err)
	}
	whole := object.(*config.KubeSchedulerConfiguration)
	whole.Profiles[0].Plugins = nil
	whole.Profiles[0].PluginConfig = []config.PluginConfig{{Name: plugin, Args: arguments}}
	return whole
}

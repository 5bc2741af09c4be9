package v1

import (
	"encoding/json"
	"os"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

const (
	recordedVersion = "kubescheduler.config.k8s.io/v1"
	recordedKind    = "KubeSchedulerConfiguration"
)

// recordInput appends what a test gives defaults to a file, as the text of a configuration file.
func recordInput(object any, plugin string) {
	var whole any
	if given, ok := object.(*configv1.KubeSchedulerConfiguration); ok {
		named := given.DeepCopy()
		named.APIVersion, named.Kind = recordedVersion, recordedKind
		whole = named
	} else {
		arguments := map[string]any{"name": plugin, "args": object}
		whole = map[string]any{
			"apiVersion": recordedVersion,
			"kind":       recordedKind,
			"profiles":   []any{map[string]any{"pluginConfig": []any{arguments}}},
		}
	}
	text, err := json.Marshal(whole)
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

{{/* The label app.kubernetes.io/name. */}}
{{- define "loadmaster.name" -}}
{{ .Values.nameOverride | default .Chart.Name }}
{{- end }}

{{/* What the objects are called. */}}
{{- define "loadmaster.fullname" -}}
{{ .Values.fullnameOverride | default .Release.Name }}
{{- end }}

{{/*
What cluster-scoped objects are called. Neither part can have a colon, so two releases never share a name, as
a-b/c and a/b-c would with a dash.
*/}}
{{- define "loadmaster.clusterName" -}}
{{ .Release.Namespace }}:{{ include "loadmaster.fullname" . }}
{{- end }}

{{- define "loadmaster.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (include "loadmaster.fullname" .) }}
{{- end }}

{{/* The Lease by which replicas know which of them works: its name and namespace. */}}
{{- define "loadmaster.leaseName" -}}
{{ (.Values.config.leaderElection).resourceName | default (include "loadmaster.fullname" .) }}
{{- end }}

{{- define "loadmaster.leaseNamespace" -}}
{{ (.Values.config.leaderElection).resourceNamespace | default .Release.Namespace }}
{{- end }}

{{/* The names of all profiles, separated by commas. */}}
{{- define "loadmaster.profiles" -}}
{{- $names := list -}}
{{- range .Values.config.profiles }}{{ $names = append $names .schedulerName }}{{ end -}}
{{ join "," $names }}
{{- end }}

{{/* Not empty if only one replica works at a time. */}}
{{- define "loadmaster.elects" -}}
{{- if not (eq (toString (.Values.config.leaderElection).leaderElect) "false") -}}true{{- end -}}
{{- end }}

{{- define "loadmaster.image" -}}
{{- $image := .Values.image -}}
{{- $tag := $image.tag | default (ternary "" .Chart.AppVersion (not (empty $image.digest))) -}}
{{ with $image.registry }}{{ . }}/{{ end }}{{ $image.repository }}{{ with $tag }}:{{ . }}{{ end }}{{ with $image.digest }}@{{ . }}{{ end }}
{{- end }}

{{/* The labels by which Deployment and Service know their pods. They never change over the life of a release. */}}
{{- define "loadmaster.selector" -}}
app.kubernetes.io/name: {{ include "loadmaster.name" . | toYaml }}
app.kubernetes.io/instance: {{ .Release.Name | toYaml }}
{{- end }}

{{/* Labels of an object: (list $ EXTRA), where EXTRA is a map of the values or nil. Each key comes once. */}}
{{- define "loadmaster.labels" -}}
{{- $root := first . -}}
{{- $helm := dict "helm.sh/chart" (printf "%s-%s" $root.Chart.Name ($root.Chart.Version | replace "+" "_")) -}}
{{- $_ := set $helm "app.kubernetes.io/managed-by" $root.Release.Service -}}
{{- toYaml (mergeOverwrite $helm (include "loadmaster.podLabels" . | fromYaml)) -}}
{{- end }}

{{/* The same without what is about Helm: a new chart alone is no reason for a new pod. */}}
{{- define "loadmaster.podLabels" -}}
{{- $root := first . -}}
{{- $version := dict "app.kubernetes.io/version" $root.Chart.AppVersion -}}
{{- $common := $root.Values.commonLabels | default dict -}}
{{- $selector := include "loadmaster.selector" $root | fromYaml -}}
{{- toYaml (mergeOverwrite $version $common (last . | default dict) $selector) -}}
{{- end }}

{{/* What of the configuration a scheduler at work does not take over: RELOADABLE in scheduler/config/reloadable.py is the rest. */}}
{{- define "loadmaster.restarts" -}}
{{- $config := omit .Values.config "profiles" "percentageOfNodesToScore" "podInitialBackoffSeconds" "podMaxBackoffSeconds" "extenders" -}}
{{- $own := .Values.config.loadmaster | default dict -}}
{{- $own = omit $own "seed" "podMaxInUnschedulablePodsSeconds" "pluginDirectories" "pluginModules" "pluginLimits" "podsAtExtenders" "topologyLevels" "groupReservationSeconds" "groupBackfill" "damagedGroupSeconds" -}}
{{- toYaml (set $config "loadmaster" $own) -}}
{{- end }}

{{/* All that the ConfigMap holds. */}}
{{- define "loadmaster.data" -}}
config.yaml: |
  {{- toYaml .Values.config | nindent 2 }}
{{- end }}

{{/* What the scheduler requests: those for the size of the cluster, with `resources` over them. */}}
{{- define "loadmaster.resources" -}}
{{- $sizes := .Files.Get "files/sizes.yaml" | fromYaml -}}
{{- $size := (get $sizes (.Values.clusterSize | default "") | default dict).resources | default dict -}}
{{- with mergeOverwrite $size (.Values.resources | default dict) }}{{ toYaml . }}{{ end -}}
{{- end }}

{{/* The Service's names need the cluster's DNS, which a pod on the node's network asks only under this policy. */}}
{{- define "loadmaster.dnsPolicy" -}}
{{ .Values.dnsPolicy | default (ternary "ClusterFirstWithHostNet" "" .Values.hostNetwork) }}
{{- end }}

{{/* Probe (list PATH TIMINGS). */}}
{{- define "loadmaster.probe" -}}
httpGet:
  path: {{ first . }}
  port: https
  scheme: HTTPS
{{- with last . }}
{{ toYaml . }}
{{- end }}
{{- end }}

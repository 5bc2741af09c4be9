{{/* The plugins that any profile enables at any point, as scheduler/config/merge.py has it, and the kinds of workloads
     that Coscheduling is to know, as Coscheduling/RayCluster, and CapacityScheduling/kueueStatus: a JSON list in `names`. */}}
{{- define "loadmaster.plugins" -}}
{{- $default := (.Files.Get "files/permissions.yaml" | fromYaml).defaultPlugins -}}
{{- $names := list -}}
{{- range $profile := .Values.config.profiles -}}
  {{- $sets := $profile.plugins | default dict -}}
  {{- $disabled := list -}}
  {{- range (($sets.multiPoint | default dict).disabled | default list) }}{{ $disabled = append $disabled .name }}{{ end -}}
  {{- if not (has "*" $disabled) -}}
    {{- range $default }}{{ if not (has . $disabled) }}{{ $names = append $names . }}{{ end }}{{ end -}}
  {{- end -}}
  {{- range $set := $sets -}}
    {{- range (($set | default dict).enabled | default list) }}{{ $names = append $names .name }}{{ end -}}
  {{- end -}}
  {{- range ($profile.pluginConfig | default list) -}}
    {{- $args := .args | default dict -}}
    {{- if eq .name "Coscheduling" -}}
      {{- range concat ($args.workloads | default list) (($args.gangs | default dict).kinds | default list) -}}
        {{- $names = append $names (printf "Coscheduling/%s" .) -}}
      {{- end -}}
    {{- else if and (eq .name "CapacityScheduling") $args.kueueStatus -}}
      {{- $names = append $names "CapacityScheduling/kueueStatus" -}}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- /* The feature gate makes the scheduler itself read groups of pods, whatever the profiles enable. */ -}}
{{- if regexMatch "GenericWorkload=(true|True|TRUE|t|T|1)" (join " " .Values.extraArgs) }}{{ $names = append $names "GangScheduling" }}{{ end -}}
{{- if regexMatch "CompositePodGroup=(true|True|TRUE|t|T|1)" (join " " .Values.extraArgs) }}{{ $names = append $names "GangScheduling/CompositePodGroup" }}{{ end -}}
{{- dict "names" (uniq $names) | toJson -}}
{{- end }}

{{/* What these plugins and the scheduler itself need, each rule with its reasons. */}}
{{- define "loadmaster.rules" -}}
{{- $enabled := (include "loadmaster.plugins" . | fromJson).names -}}
{{- range $rule := (.Files.Get "files/permissions.yaml" | fromYaml).rules -}}
  {{- $verbs := list -}}
  {{- $reasons := list -}}
  {{- range $need := $rule.needs -}}
    {{- $for := list -}}
    {{- range $need.plugins }}{{ if has . $enabled }}{{ $for = append $for . }}{{ end }}{{ end -}}
    {{- if or $for (not $need.plugins) -}}
      {{- $verbs = concat $verbs $need.verbs -}}
      {{- $whom := ternary (printf " (%s)" (join ", " $for)) "" (not (empty $for)) -}}
      {{- $reasons = append $reasons (printf "%s: %s%s" (join ", " $need.verbs) $need.reason $whom) -}}
    {{- end -}}
  {{- end -}}
  {{- if $verbs }}
{{- range $reasons }}
# {{ . }}
{{- end }}
- apiGroups: [{{ $rule.apiGroup | quote }}]
  resources: [{{ $rule.resource }}]
  verbs: [{{ $verbs | uniq | sortAlpha | join ", " }}]
  {{- end -}}
{{- end -}}
{{- end }}

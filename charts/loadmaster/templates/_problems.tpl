{{/* Contradictions among the values, a line each: what a schema of single values cannot see. */}}
{{- define "loadmaster.problems" -}}
{{- $values := .Values -}}

{{- if and (gt (int $values.replicas) 1) (not (include "loadmaster.elects" .)) }}
replicas: {{ $values.replicas }} schedulers would each do the same work with config.leaderElection.leaderElect=false: use 1, or 0 to pause
{{- end }}

{{- $fullname := include "loadmaster.fullname" . -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$" $fullname) }}
fullnameOverride: the release's name {{ $fullname | quote }} cannot be a Service's: set a name that begins with a letter and has no dots
{{- end }}

{{- range $where := list "commonLabels" "podLabels" "service.labels" -}}
  {{- $labels := ternary $values.service.labels (get $values $where) (eq $where "service.labels") | default dict -}}
  {{- range $key := list "app.kubernetes.io/name" "app.kubernetes.io/instance" -}}
    {{- if hasKey $labels $key }}
{{ $where }}: {{ $key }} is a label of the selector, which cannot be overridden (nameOverride sets the name)
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- if hasKey ($values.podAnnotations | default dict) "checksum/config" }}
podAnnotations: checksum/config is set by the chart, so that a setting restarts the pod that it cannot take over
{{- end }}

{{- if and (not $values.serviceAccount.create) (not $values.serviceAccount.name) }}
serviceAccount.name: needed with serviceAccount.create=false: name the account that exists (`default` for the namespace's own)
{{- end }}
{{- range $what := list "annotations" "labels" -}}
  {{- if and (not $values.serviceAccount.create) (get $values.serviceAccount $what) }}
serviceAccount.{{ $what }}: no account is created with serviceAccount.create=false: set them on the account that exists
  {{- end -}}
{{- end -}}
{{- if and (not $values.rbac.create) $values.rbac.extraRules }}
rbac.extraRules: no rule is added with rbac.create=false: add these to the ClusterRole that you grant yourself
{{- end }}

{{- if and (not $values.networkPolicy.enabled) (or $values.networkPolicy.from $values.networkPolicy.extraEgress) }}
networkPolicy: nothing is let in or out by networkPolicy.from and extraEgress with networkPolicy.enabled=false
{{- end }}

{{- if and $values.hostNetwork $values.networkPolicy.enabled }}
networkPolicy: does not apply to pods on the node's network: leave out hostNetwork or networkPolicy.enabled
{{- end }}
{{- if and (eq $values.dnsPolicy "None") (not ($values.dnsConfig | default dict).nameservers) }}
dnsConfig.nameservers: needed with dnsPolicy=None
{{- end }}

{{- $budget := $values.podDisruptionBudget -}}
{{- if and (kindIs "invalid" $budget.maxUnavailable) (kindIs "invalid" $budget.minAvailable) }}
podDisruptionBudget: set maxUnavailable or minAvailable, or enabled=false
{{- end }}

{{- $alerts := list -}}
{{- range (.Files.Get "monitoring/rules.yaml" | fromYaml).groups }}{{ range .rules }}{{ $alerts = append $alerts .alert }}{{ end }}{{ end -}}
{{- range $values.monitoring.rules.disabled -}}
  {{- if not (has . $alerts) }}
monitoring.rules.disabled: there is no alert {{ . | quote }}; docs/runbook.md has all of them
  {{- end -}}
{{- end -}}

{{- if and (eq ($values.strategy).type "Recreate") ($values.strategy).rollingUpdate }}
strategy.rollingUpdate: has no meaning with strategy.type=Recreate: use RollingUpdate, or leave it out
{{- end }}

{{- $set := dict "--config" "use the value config" "--secure-port" "use the value port" "--logging-format" "the log is JSON" -}}
{{- if $values.tls.secretName -}}
  {{- $_ := set $set "--tls-cert-file" "use the value tls.secretName" -}}
  {{- $_ := set $set "--tls-private-key-file" "use the value tls.secretName" -}}
{{- end -}}
{{- range $argument := $values.extraArgs -}}
  {{- $flag := splitList "=" $argument | first -}}
  {{- range $own, $instead := $set -}}
    {{- /* A prefix of a flag is that flag, too. */ -}}
    {{- if and (hasPrefix "--" $flag) (gt (len $flag) 2) (hasPrefix $flag $own) }}
extraArgs: {{ $argument }} repeats {{ $own }}, which the chart sets: {{ $instead }}
    {{- end -}}
  {{- end -}}
  {{- if and (gt (len $flag) 2) (or (hasPrefix "--leader-elect" $flag) (and (hasPrefix "--" $flag) (hasPrefix $flag "--leader-elect"))) }}
extraArgs: {{ $argument }} is about leader election, which the chart sets up with its Role: use the value config.leaderElection
  {{- end -}}
{{- end -}}

{{- range $name, $text := $values.plugins.files -}}
  {{- if not (regexMatch "^[A-Za-z_][A-Za-z0-9_]*[.]py$" $name) }}
plugins.files: {{ $name | quote }} is no name of a Python module, such as gpu_guard.py
  {{- end -}}
{{- end -}}

{{- $containers := list "loadmaster" -}}
{{- range $where := list "initContainers" "extraContainers" -}}
  {{- range $container := get $values $where -}}
    {{- if has $container.name $containers }}
{{ $where }}: there are two containers {{ $container.name | quote }}
    {{- end -}}
    {{- $containers = append $containers $container.name -}}
  {{- end -}}
{{- end -}}

{{- $own := list "config" "plugin-files" "tls" -}}
{{- $volumes := list "config" -}}
{{- range $volume := $values.extraVolumes -}}
  {{- if has $volume.name $own }}
extraVolumes: the volume `{{ $volume.name }}` is the chart's own: choose another name
  {{- else if has $volume.name $volumes }}
extraVolumes: there are two volumes {{ $volume.name | quote }}
  {{- end -}}
  {{- $volumes = append $volumes $volume.name -}}
{{- end -}}
{{- range $mount := $values.extraVolumeMounts -}}
  {{- if not (has $mount.name $volumes) }}
extraVolumeMounts: there is no volume {{ $mount.name | quote }} in extraVolumes
  {{- end -}}
  {{- if eq (trimSuffix "/" $mount.mountPath) "/etc/loadmaster" }}
extraVolumeMounts: /etc/loadmaster is where the chart's own configuration is: mount {{ $mount.name | quote }} elsewhere
  {{- end -}}
  {{- if eq (trimSuffix "/" $mount.mountPath) "/etc/loadmaster-plugins" }}
extraVolumeMounts: /etc/loadmaster-plugins is where the chart's plugins.files are: mount {{ $mount.name | quote }} elsewhere
  {{- end -}}
{{- end -}}
{{- end }}

{{/* Refuse the values if they contradict each other, or what is in the cluster, with all problems at once. */}}
{{- define "loadmaster.check" -}}
{{- $problems := list -}}
{{- with include "loadmaster.problems" . | trim -}}
  {{- $problems = append $problems (printf "these values contradict each other:\n%s" .) -}}
{{- end -}}
{{- with printf "%s\n%s" (include "loadmaster.upgradeProblem" . | trim) (include "loadmaster.leaseProblem" . | trim) | trim -}}
  {{- $problems = append $problems (printf "nothing was changed:\n%s" .) -}}
{{- end -}}
{{- with $problems }}{{ fail (join "\n" .) }}{{ end -}}
{{- end }}

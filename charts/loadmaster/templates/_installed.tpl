{{/*
What the cluster says about this installation before anything is changed. Without a cluster, as in `helm template`, there
is nothing to look up, and nothing is refused.
*/}}

{{/* The version of the installed release, such as 0.1.0; empty if there is none. */}}
{{- define "loadmaster.installedVersion" -}}
{{- if .Release.IsUpgrade -}}
  {{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (include "loadmaster.fullname" .) -}}
  {{- $version := dig "metadata" "labels" "app.kubernetes.io/version" "" $deployment -}}
  {{- if regexMatch "^[0-9]+[.][0-9]+[.][0-9]+" $version -}}{{ $version }}{{- end -}}
{{- end -}}
{{- end }}

{{/* Of (list $ VERSION): the releases after VERSION up to this chart's, the oldest first: a JSON list in `releases`. */}}
{{- define "loadmaster.releasesSince" -}}
{{- $root := first . -}}
{{- $installed := last . -}}
{{- $found := list -}}
{{- range $root.Files.Get "files/releases.yaml" | fromYamlArray -}}
  {{- if and (semverCompare (printf "> %s" $installed) .version) (semverCompare (printf "<= %s" $root.Chart.Version) .version) -}}
    {{- $found = append $found . -}}
  {{- end -}}
{{- end -}}
{{- dict "releases" $found | toJson -}}
{{- end }}

{{/* A line if the upgrade leaves out a minor release: its actions, and what it does to objects, would be left out, too. */}}
{{- define "loadmaster.upgradeProblem" -}}
{{- $installed := include "loadmaster.installedVersion" . -}}
{{- if $installed -}}
  {{- $minor := regexFind "^[0-9]+[.][0-9]+" $installed -}}
  {{- $own := regexFind "^[0-9]+[.][0-9]+" .Chart.Version -}}
  {{- $between := list -}}
  {{- range (include "loadmaster.releasesSince" (list . $installed) | fromJson).releases -}}
    {{- $of := regexFind "^[0-9]+[.][0-9]+" .version -}}
    {{- if not (has $of (list $minor $own)) }}{{ $between = append $between .version }}{{ end -}}
  {{- end -}}
  {{- with $between }}
Loadmaster {{ $installed }} is installed, and an upgrade to {{ $.Chart.Version }} would leave out {{ join ", " . }}: upgrade to {{ first . }} first (docs/upgrading.md has what to do before each)
  {{- end -}}
{{- end -}}
{{- end }}

{{/* What this upgrade requires of the operator, release by release. */}}
{{- define "loadmaster.actions" -}}
{{- $installed := include "loadmaster.installedVersion" . -}}
{{- if $installed -}}
  {{- range (include "loadmaster.releasesSince" (list . $installed) | fromJson).releases -}}
    {{- range .actions }}
  - {{ . }}
    {{- end -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* Who holds the Lease (list NAMESPACE NAME): empty if nobody does, or if it was not renewed in time. */}}
{{- define "loadmaster.holder" -}}
{{- $spec := (lookup "coordination.k8s.io/v1" "Lease" (first .) (last .)).spec | default dict -}}
{{- if and $spec.holderIdentity $spec.renewTime -}}
  {{- $renewed := toDate "2006-01-02T15:04:05.999999Z07:00" $spec.renewTime | unixEpoch | int64 -}}
  {{- $seconds := sub (add $renewed (int64 ($spec.leaseDurationSeconds | default 15))) (now | unixEpoch | int64) -}}
  {{- if gt $seconds 0 }}{{ $spec.holderIdentity }}{{ end -}}
{{- end -}}
{{- end }}

{{/* Not empty if this is to take kube-scheduler's place: both elect one leader, and the other stands by. */}}
{{- define "loadmaster.sharesKubeSchedulersLease" -}}
{{- $lease := printf "%s/%s" (include "loadmaster.leaseNamespace" .) (include "loadmaster.leaseName" .) -}}
{{- if and (eq $lease "kube-system/kube-scheduler") (include "loadmaster.profiles" . | splitList "," | has "default-scheduler") }}true{{ end -}}
{{- end }}

{{/* The flags that name the Lease. */}}
{{- define "loadmaster.leaseFlags" -}}
- --leader-elect-resource-namespace={{ include "loadmaster.leaseNamespace" . }}
- --leader-elect-resource-name={{ include "loadmaster.leaseName" . }}
{{- end }}

{{/* Not empty if this release uses the same Lease already. */}}
{{- define "loadmaster.keepsItsLease" -}}
{{- if .Release.IsUpgrade -}}
  {{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace (include "loadmaster.fullname" .) -}}
  {{- $flags := include "loadmaster.leaseFlags" . | fromYamlArray -}}
  {{- range dig "spec" "template" "spec" "containers" list $deployment -}}
    {{- if and (has (first $flags) (.args | default list)) (has (last $flags) (.args | default list)) -}}true{{- end -}}
  {{- end -}}
{{- end -}}
{{- end }}

{{/* A line if another installation elects its leader by the same Lease. */}}
{{- define "loadmaster.leaseProblem" -}}
{{- $isFine := or (include "loadmaster.sharesKubeSchedulersLease" .) (include "loadmaster.keepsItsLease" .) -}}
{{- if and .Values.rbac.create (include "loadmaster.elects" .) (not $isFine) -}}
  {{- $namespace := include "loadmaster.leaseNamespace" . -}}
  {{- $name := include "loadmaster.leaseName" . -}}
  {{- $holder := include "loadmaster.holder" (list $namespace $name) -}}
  {{- if and $holder (not (hasPrefix (printf "%s-" (include "loadmaster.fullname" .)) $holder)) -}}
config.leaderElection: the Lease {{ $namespace }}/{{ $name }} is held by {{ $holder }}, which is no pod of this release. Of two installations with the same Lease only one places pods: set another resourceName
  {{- end -}}
{{- end -}}
{{- end }}

{{/* Warnings for NOTES.txt, a line each: other schedulers that take the same pods. */}}
{{- define "loadmaster.rivals" -}}
{{- $own := include "loadmaster.profiles" . | splitList "," -}}
{{- if .Values.rbac.create -}}
  {{- range $role := (lookup "rbac.authorization.k8s.io/v1" "ClusterRole" "" "").items | default list -}}
    {{- $theirs := dig "annotations" "loadmaster.github.io/profiles" "" $role.metadata | splitList "," -}}
    {{- range $name := ternary list $theirs (eq $role.metadata.name (include "loadmaster.clusterName" $)) -}}
      {{- if has $name $own }}
{{ $name }} is also a profile of the installation {{ $role.metadata.name | replace ":" "/" }}
      {{- end -}}
    {{- end -}}
  {{- end -}}
  {{- if and (has "default-scheduler" $own) (not (include "loadmaster.sharesKubeSchedulersLease" .)) (include "loadmaster.holder" (list "kube-system" "kube-scheduler")) }}
default-scheduler is also kube-scheduler's profile, and kube-scheduler is at work
  {{- end -}}
{{- end -}}
{{- end }}

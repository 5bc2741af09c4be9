{{- define "loadmaster.labels" -}}
app.kubernetes.io/name: loadmaster
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "loadmaster.selector" -}}
app.kubernetes.io/name: loadmaster
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "loadmaster.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Release.Name }}
{{- end }}

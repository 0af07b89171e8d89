{{- define "wfe-operator.name" -}}
{{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* The name of the operator's objects. At most 52 characters, because longer names are built from it. */ -}}
{{- define "wfe-operator.fullname" -}}
{{- $name := include "wfe-operator.name" . -}}
{{- if .Values.fullnameOverride -}}
{{ .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name -}}
{{ .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else -}}
{{ printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "wfe-operator.serviceAccountName" -}}
{{ default (include "wfe-operator.fullname" .) .Values.serviceAccount.name }}
{{- end }}

{{- define "wfe-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "wfe-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "wfe-operator.labels" -}}
{{ include "wfe-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "wfe-operator.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- with .Values.image.digest }}@{{ . }}{{ end }}
{{- end }}

{{- define "wfe-operator.address" -}}
{{ if contains ":" .host }}[{{ .host }}]{{ else }}{{ .host }}{{ end }}:{{ .port }}
{{- end }}

{{- /* The arguments of the operator that values set, as a YAML list. */ -}}
{{- define "wfe-operator.args" -}}
- --namespace={{ .Release.Namespace }}
{{- with .Values.watchNamespace }}
- --watch-namespace={{ . }}
{{- end }}
- --execution-namespace={{ .Values.executionNamespace.name }}
- --service-account={{ .Values.runner.name }}
- --config-map={{ .Values.configMap.name }}
- --leader-elect={{ .Values.leaderElection.enabled }}
{{- if .Values.leaderElection.enabled }}
- --lease-name={{ include "wfe-operator.fullname" . }}
- --lease-duration={{ .Values.leaderElection.leaseDuration }}
- --renew-deadline={{ .Values.leaderElection.renewDeadline }}
- --retry-period={{ .Values.leaderElection.retryPeriod }}
{{- end }}
- --metrics-address={{ include "wfe-operator.address" (dict "host" .Values.bindAddress "port" .Values.metrics.port) }}
{{- if .Values.metrics.tls.secretName }}
- --metrics-tls-certificate=/etc/wfe-operator/metrics-tls/tls.crt
- --metrics-tls-key=/etc/wfe-operator/metrics-tls/tls.key
{{- end }}
{{- if .Values.metrics.authentication }}
- --metrics-authentication=true
{{- end }}
- --health-address={{ include "wfe-operator.address" (dict "host" .Values.bindAddress "port" .Values.health.port) }}
- --log-format={{ .Values.log.format }}
- --log-level={{ .Values.log.level }}
{{- end }}

{{- /* Replaces names in a text: {text: ..., names: [[old, new], ...]}. */ -}}
{{- define "wfe-operator.renamed" -}}
{{- $text := .text -}}
{{- /* In two steps, because a new name may contain an old one. */ -}}
{{- range $n, $name := .names -}}
{{- $text = replace (first $name) (printf "<%d>" $n) $text -}}
{{- end -}}
{{- range $n, $name := .names -}}
{{- $text = replace (printf "<%d>" $n) (last $name) $text -}}
{{- end -}}
{{ $text }}
{{- end }}

{{- /* The objects of the files of a glob, as they are in config/, with the names of this release: {objects: [...]}. */ -}}
{{- define "wfe-operator.objects" -}}
{{- $names := list
  (list "wfe-operator" (include "wfe-operator.fullname" .root))
  (list "workflowexecution-config" .root.Values.configMap.name)
  (list "kubernaut-workflows" .root.Values.executionNamespace.name)
  (list "kubernaut-system" .root.Release.Namespace) -}}
{{- $objects := list -}}
{{- range $path, $_ := .root.Files.Glob .glob -}}
{{- $text := include "wfe-operator.renamed" (dict "text" ($.root.Files.Get $path) "names" $names) -}}
{{- range splitList "\n---\n" $text -}}
{{- with fromYaml . -}}
{{- $labels := include "wfe-operator.labels" $.root | fromYaml -}}
{{- $_ := set .metadata "labels" (merge (default dict .metadata.labels) $labels) -}}
{{- $objects = append $objects . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{ toYaml (dict "objects" $objects) }}
{{- end }}

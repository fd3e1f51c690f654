{{- define "jupyter-pai.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "jupyter-pai.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains (include "jupyter-pai.name" .) .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "jupyter-pai.name" .) | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of this release; never changes. */}}
{{- define "jupyter-pai.selector" -}}
app.kubernetes.io/name: {{ include "jupyter-pai.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "jupyter-pai.labels" -}}
{{ include "jupyter-pai.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: jupyter-pai
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The component whose pods do a part's work: with `standalone` one pod does all. Called with (dict "root" $ "part" "api"). */}}
{{- define "jupyter-pai.component" -}}
{{- ternary "backend" .part .root.Values.standalone -}}
{{- end -}}

{{- define "jupyter-pai.account" -}}
{{- $part := ternary "controller" .part .root.Values.standalone -}}
{{- $default := printf "%s-%s" (include "jupyter-pai.fullname" .root) $part -}}
{{- default $default (index .root.Values.serviceAccount.names $part) -}}
{{- end -}}

{{- define "jupyter-pai.image" -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}

{{- define "jupyter-pai.claim" -}}
{{- default (include "jupyter-pai.fullname" .) .Values.storage.existingClaim -}}
{{- end -}}

{{/* The storage of tasks is a claim of the chart's, unless `config` names another default storage. Text, or nothing. */}}
{{- define "jupyter-pai.hasTaskStorage" -}}
{{- if and .Values.tasks.storage.enabled (not (dig "storage" "default_uri" "" .Values.config)) -}}yes{{- end -}}
{{- end -}}

{{- define "jupyter-pai.taskClaim" -}}
{{- default (printf "%s-jobs" (include "jupyter-pai.fullname" .)) .Values.tasks.storage.existingClaim -}}
{{- end -}}

{{- define "jupyter-pai.tasksNamespace" -}}
{{- default (printf "%s-tasks" .Release.Namespace) .Values.tasks.namespace -}}
{{- end -}}

{{/* All namespaces that tasks are in, as a list in JSON. */}}
{{- define "jupyter-pai.taskNamespaces" -}}
{{- $base := include "jupyter-pai.tasksNamespace" . -}}
{{- $found := list -}}
{{- if eq .Values.tasks.per "cluster" -}}
{{- $found = append $found $base -}}
{{- else -}}
{{- range .Values.tasks.names -}}
{{- $found = append $found (printf "%s-%s" $base .) -}}
{{- end -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "jupyter-pai.rights.controller" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/exec] # the launcher's record of a task that is kept for debugging; how much GPUs work
  verbs: [get, create]
- apiGroups: [metrics.k8s.io]
  resources: [pods] # CPU and memory of tasks, where the cluster has metrics-server
  verbs: [list]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get, list, create, patch, delete]
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get, create, patch, delete]
- apiGroups: [""]
  resources: [events]
  verbs: [list, watch]
{{- if dig "kubernetes" "pod_events" true .Values.config }}
- apiGroups: [events.k8s.io]
  resources: [events] # what is done with pods of tasks, and why
  verbs: [create, patch]
{{- end }}
- apiGroups: [""]
  resources: [services] # with config.kubernetes.pods.names: dns
  verbs: [get, create]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies]
  verbs: [get, create]
{{- include "jupyter-pai.rights.forward" . }}
{{- end -}}

{{- define "jupyter-pai.rights.api" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
- apiGroups: [""]
  resources: [pods/log]
  verbs: [get]
- apiGroups: [""]
  resources: [secrets]
  verbs: [get]
{{- include "jupyter-pai.rights.forward" . }}
{{- end -}}

{{- define "jupyter-pai.rights.gateway" -}}
- apiGroups: [""]
  resources: [pods]
  verbs: [get]
{{- include "jupyter-pai.rights.forward" . }}
{{- end -}}

{{/* For backends outside of the cluster, which cannot connect to pods. */}}
{{- define "jupyter-pai.rights.forward" -}}
{{- if .Values.rbac.portForward }}
- apiGroups: [""]
  resources: [pods/portforward]
  verbs: [get, create]
{{- end }}
{{- end -}}

{{/* Nodes are in no namespace. One watch follows the tasks of all namespaces where there are several. */}}
{{- define "jupyter-pai.clusterRights.controller" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [get, list, watch]
{{- if .Values.standalone }}
{{- include "jupyter-pai.clusterRights.leases" . }}
{{- end }}
{{- $counts := dig "kubernetes" "nodes" "count_other_pods" true .Values.config }}
{{- if ne .Values.tasks.per "cluster" }}
- apiGroups: [""]
  resources: [namespaces]
  verbs: [get, list]
- apiGroups: [""]
  resources: [pods, events]
  verbs: [list, watch]
{{- else if $counts }}
{{- /* What others' pods request of nodes; rights cannot be limited to that. */}}
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
{{- end }}
{{- end -}}

{{- define "jupyter-pai.clusterRights.api" -}}
- apiGroups: [""]
  resources: [nodes]
  verbs: [list, watch]
{{- include "jupyter-pai.clusterRights.leases" . }}
{{- end -}}

{{/* How long a node has not been heard of; of the names, only those of nodes are asked for. */}}
{{- define "jupyter-pai.clusterRights.leases" }}
- apiGroups: [coordination.k8s.io]
  resources: [leases]
  verbs: [get]
{{- end -}}

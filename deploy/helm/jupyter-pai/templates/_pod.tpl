{{/*
The pod of one part: (dict "root" $ "part" "api" "arguments" (list …) "values" .Values.api "secrets" (list …)
"ports" (list …) "probes" (dict …) "logs" true). `secrets` names variables that come from the Secret, `part` is backend where one pod does everything.
*/}}
{{- define "jupyter-pai.pod" -}}
{{- $root := .root -}}
metadata:
  labels:
    {{- include "jupyter-pai.labels" $root | nindent 4 }}
    app.kubernetes.io/component: {{ .part }}
  annotations:
    checksum/config: {{ include (print $root.Template.BasePath "/configmap.yaml") $root | sha256sum }}
    {{- with .values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "jupyter-pai.account" (dict "root" $root "part" .part) }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ $root.Values.terminationGracePeriodSeconds }}
  {{- with $root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with $root.Values.image.pullSecrets }}
  imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    {{- with $root.Values.runAs }}
    runAsUser: {{ . }}
    runAsGroup: {{ . }}
    fsGroup: {{ . }}
    {{- end }}
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile:
      type: RuntimeDefault
  containers:
    - name: {{ .part }}
      image: {{ include "jupyter-pai.image" $root }}
      imagePullPolicy: {{ $root.Values.image.pullPolicy }}
      args: {{- toYaml .arguments | nindent 8 }}
      env:
        - name: LOGNAME # the number of the user has no name in any image, and libraries ask for one
          value: jupyter-pai
        {{- range .secrets }}
        - name: {{ .variable }}
          valueFrom:
            secretKeyRef:
              name: {{ $root.Values.secretName }}
              key: {{ .key }}
              optional: {{ .optional }}
        {{- end }}
      {{- with .ports }}
      ports: {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .probes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
      resources: {{- toYaml .values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      volumeMounts:
        - name: config
          mountPath: /etc/jupyter-pai
          readOnly: true
        - name: data
          mountPath: /var/lib/jupyter-pai
        {{- if .logs }}
        - name: kept
          mountPath: /var/lib/jupyter-pai/task-logs
        {{- end }}
        - name: tmp
          mountPath: /tmp
    {{- if and $root.Values.front.image (eq .part (include "jupyter-pai.component" (dict "root" $root "part" "api"))) }}
    {{- include "jupyter-pai.front" $root | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "jupyter-pai.fullname" $root }}
    - name: data
      {{- if $root.Values.standalone }}
      persistentVolumeClaim:
        claimName: {{ include "jupyter-pai.claim" $root }}
      {{- else }}
      emptyDir: {}
      {{- end }}
    {{- if .logs }}
    - name: kept
      persistentVolumeClaim:
        claimName: {{ include "jupyter-pai.claim" $root }}
    {{- end }}
    - name: tmp
      emptyDir: {}
  {{- with .values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "jupyter-pai.selector" $root | nindent 10 }}
          app.kubernetes.io/component: {{ $.part }}
    {{- end }}
{{- end -}}

{{/* Variables from the Secret. */}}
{{- define "jupyter-pai.secrets" -}}
{{- if not .Values.standalone }}
- {variable: PAI_BACKEND_DATABASE, key: database, optional: false}
{{- end }}
- {variable: PAI_BACKEND_SECRET_KEY, key: secret-key, optional: false}
{{- end -}}

{{- define "jupyter-pai.secrets.storage" -}}
- {variable: PAI_BACKEND_STORAGE__OPTIONS, key: storage-options, optional: true}
{{- end -}}

{{- define "jupyter-pai.secrets.users" -}}
- {variable: PAI_BACKEND_API__TOKENS, key: tokens, optional: true}
- {variable: PAI_BACKEND_API__USERS, key: users, optional: true}
{{- end -}}

{{- define "jupyter-pai.ports.api" -}}
- {name: http, containerPort: 8080}
{{- end -}}

{{- define "jupyter-pai.ports.gateway" -}}
- {name: ssh, containerPort: 2222}
{{- with .Values.gateway.metricsPort }}
- {name: metrics, containerPort: {{ int . }}}
{{- end }}
{{- end -}}

{{- define "jupyter-pai.ports.controller" -}}
{{- with .Values.controller.metricsPort }}
- {name: figures, containerPort: {{ int . }}}
{{- end }}
{{- end -}}

{{/* Ready is a controller whose database answers: one that waits for its turn is, too. */}}
{{- define "jupyter-pai.probes.controller" -}}
{{- if .Values.controller.metricsPort }}
startupProbe:
  httpGet: {path: /healthz, port: figures}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: figures}
  periodSeconds: 15
  timeoutSeconds: 10
  failureThreshold: 8
readinessProbe:
  httpGet: {path: /readyz, port: figures}
  periodSeconds: 10
  timeoutSeconds: 5
{{- end }}
{{- end -}}

{{/* An API that answers is of use while the controller is away, so only its database counts. */}}
{{- define "jupyter-pai.probes.api" -}}
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 15
  timeoutSeconds: 5
  failureThreshold: 4
readinessProbe:
  httpGet: {path: "/readyz?check=database", port: http}
  periodSeconds: 5
  timeoutSeconds: 5
{{- end -}}

{{/* It listens when its database has answered; each look is a line of its log. */}}
{{- define "jupyter-pai.probes.gateway" -}}
startupProbe:
  tcpSocket: {port: ssh}
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  tcpSocket: {port: ssh}
  periodSeconds: 30
{{- end -}}

{{/*
Envoy beside the api in its pod (docs/forward-auth.md): its configuration is deploy/envoy/envoy.yaml, with the release's names.
*/}}
{{- define "jupyter-pai.envoy" -}}
{{- $domain := required "api.serviceDomain is needed for front.image: services of tasks answer below it" .Values.api.serviceDomain -}}
{{- $told := .Files.Get "files/envoy.yaml" -}}
{{- $told = $told | replace "*.pai.example.org" (printf "*.%s" $domain) -}}
{{- $told = $told | replace "address: 0.0.0.0, port_value: 80}" (printf "address: %q, port_value: 8081}" .Values.listen) -}}
{{- if hasPrefix "https:" .Values.api.publicUrl -}}
{{- $told = $told | replace "%REQ(:SCHEME)%" "https" -}}
{{- end -}}
{{- $told -}}
{{- end -}}

{{- define "jupyter-pai.front" -}}
- name: front
  image: {{ .Values.front.image }}
  imagePullPolicy: {{ .Values.front.pullPolicy }}
  command: [envoy]
  args: [-c, /etc/jupyter-pai/envoy.yaml, --concurrency, "2", --log-level, warning, --disable-hot-restart]
  ports:
    - {name: services, containerPort: 8081}
  readinessProbe:
    tcpSocket: {port: services}
    periodSeconds: 5
  resources: {{- toYaml .Values.front.resources | nindent 4 }}
  securityContext:
    allowPrivilegeEscalation: false
    readOnlyRootFilesystem: true
    capabilities:
      drop: [ALL]
  volumeMounts:
    - name: config
      mountPath: /etc/jupyter-pai
      readOnly: true
{{- end -}}

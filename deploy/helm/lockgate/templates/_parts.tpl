{{- define "lockgate.labels" -}}
app.kubernetes.io/name: lockgate
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "lockgate.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "lockgate.scheme" -}}
{{ if .Values.tls.existingSecret }}https{{ else }}http{{ end }}
{{- end }}

{{/* Nobody needs more than this; what is written goes to volumes. */}}
{{- define "lockgate.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels: {{- include "lockgate.labels" . | nindent 8 }}
{{- end }}

{{- define "lockgate.container" -}}
image: {{ include "lockgate.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "lockgate.servers" -}}
{{- range list "DATABASE_URL" "REDIS_URL" "NATS_URL" }}
- name: {{ . }}
  valueFrom: {secretKeyRef: {name: {{ $.Values.servers.existingSecret }}, key: {{ . }}}}
{{- end }}
{{- end }}

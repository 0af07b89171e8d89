{{- /* Refuses values that contradict each other. The schema checks each single value. */ -}}
{{- define "wfe-operator.validate" -}}
{{- $v := .Values -}}

{{- if and (gt (int $v.replicaCount) 1) (not $v.leaderElection.enabled) -}}
{{- fail "replicaCount: more than 1 needs leaderElection.enabled: all of them would act at once" -}}
{{- end -}}
{{- if $v.leaderElection.enabled -}}
{{- $lease := include "wfe-operator.moment" $v.leaderElection.leaseDuration | int64 -}}
{{- $renew := include "wfe-operator.moment" $v.leaderElection.renewDeadline | int64 -}}
{{- $retry := include "wfe-operator.moment" $v.leaderElection.retryPeriod | int64 -}}
{{- if ge $renew $lease -}}
{{- fail (printf "leaderElection.renewDeadline: %s must be less than leaseDuration (%s): a leader must have stopped before another begins" $v.leaderElection.renewDeadline $v.leaderElection.leaseDuration) -}}
{{- end -}}
{{- if ge $retry $renew -}}
{{- fail (printf "leaderElection.retryPeriod: %s must be less than renewDeadline (%s): a leader must try more than once" $v.leaderElection.retryPeriod $v.leaderElection.renewDeadline) -}}
{{- end -}}
{{- end -}}

{{- if and $v.metrics.authentication (not $v.metrics.tls.secretName) -}}
{{- fail "metrics.authentication: needs metrics.tls.secretName: tokens must not go over plain HTTP" -}}
{{- end -}}

{{- if and $v.metrics.authentication $v.podMonitor.enabled -}}
{{- fail "podMonitor.enabled: a PodMonitor cannot send the token of Prometheus; with metrics.authentication, use serviceMonitor" -}}
{{- end -}}

{{- with $v.podDisruptionBudget -}}
{{- if .enabled -}}
{{- $min := toString (default "" .minAvailable) -}}
{{- $max := ternary "" (toString .maxUnavailable) (kindIs "invalid" .maxUnavailable) -}}
{{- if and $min $max -}}
{{- fail "podDisruptionBudget: set maxUnavailable or minAvailable, and the other to null" -}}
{{- end -}}
{{- if not (or $min $max) -}}
{{- fail "podDisruptionBudget: set maxUnavailable or minAvailable, or enabled to false" -}}
{{- end -}}
{{- if has $max (list "0" "0%") -}}
{{- fail "podDisruptionBudget.maxUnavailable: 0 would let no node be drained" -}}
{{- end -}}
{{- if or (eq $min "100%") (and $min (not (hasSuffix "%" $min)) (ge (int $min) (int $v.replicaCount))) -}}
{{- fail (printf "podDisruptionBudget.minAvailable: %s of %d replicas would let no node be drained" $min (int $v.replicaCount)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- if and $v.orchestrators (not $v.rbac.people) -}}
{{- fail "orchestrators: are bound to the role wfe-target-any, which needs rbac.people" -}}
{{- end -}}
{{- if and $v.oncall (not $v.rbac.people) -}}
{{- fail "oncall: its subjects are bound to the roles wfe-oncall, which need rbac.people" -}}
{{- end -}}
{{- if eq $v.executionNamespace.name .Release.Namespace -}}
{{- fail (printf "executionNamespace.name: must not be %s, where the operator lives: a workflow could run with its service account" .Release.Namespace) -}}
{{- end -}}
{{- if and (not $v.serviceAccount.create) (not $v.serviceAccount.name) -}}
{{- fail "serviceAccount.name: must be set where serviceAccount.create is false" -}}
{{- end -}}
{{- if and $v.config (not $v.configMap.create) -}}
{{- fail "config: would be written nowhere, because configMap.create is false" -}}
{{- end -}}
{{- $base := default "1m" (index $v.config "base-cooldown-period") -}}
{{- $longest := default "10m" (index $v.config "max-cooldown-period") -}}
{{- if lt (include "wfe-operator.moment" $longest | int64) (include "wfe-operator.moment" $base | int64) -}}
{{- fail (printf "config.max-cooldown-period: %s must not be less than base-cooldown-period (%s)" $longest $base) -}}
{{- end -}}
{{- if eq (int $v.metrics.port) (int $v.health.port) -}}
{{- fail (printf "health.port: %d is the port of the metrics too" (int $v.health.port)) -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled (not $v.metrics.service.enabled) -}}
{{- fail "serviceMonitor.enabled: needs metrics.service.enabled; a podMonitor does not" -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled $v.podMonitor.enabled -}}
{{- fail "podMonitor.enabled: serviceMonitor is enabled too, and everything would be scraped twice" -}}
{{- end -}}

{{- range list "serviceMonitor" "podMonitor" -}}
{{- $monitor := index $v . -}}
{{- if $monitor.enabled -}}
{{- if and $monitor.namespace $v.metrics.tls.secretName -}}
{{- fail (printf "%s.namespace: must be empty with metrics.tls: Prometheus reads the Secret %s in the namespace of the object" . $v.metrics.tls.secretName) -}}
{{- end -}}
{{- if and $monitor.interval $monitor.scrapeTimeout (not (regexMatch "d" (print $monitor.interval $monitor.scrapeTimeout))) -}}
{{- if gt (include "wfe-operator.moment" $monitor.scrapeTimeout | int64) (include "wfe-operator.moment" $monitor.interval | int64) -}}
{{- fail (printf "%s.scrapeTimeout: %s must not be longer than interval (%s)" . $monitor.scrapeTimeout $monitor.interval) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- /* Every API server serves apiregistration.k8s.io, and Helm does not know it without a cluster. */ -}}
{{- if and (.Capabilities.APIVersions.Has "apiregistration.k8s.io/v1") (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1")) -}}
{{- range list "serviceMonitor" "podMonitor" "prometheusRule" -}}
{{- if (index $v .).enabled -}}
{{- fail (printf "%s.enabled: needs the Prometheus operator, and this cluster does not serve monitoring.coreos.com/v1" .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and (eq (toString $v.strategy.type) "Recreate") $v.strategy.rollingUpdate -}}
{{- fail "strategy.rollingUpdate: has no effect with the type Recreate" -}}
{{- end -}}
{{- $volumes := list -}}
{{- range $v.extraVolumes -}}
{{- $volumes = append $volumes .name -}}
{{- end -}}
{{- if and $v.metrics.tls.secretName (has "metrics-tls" $volumes) -}}
{{- fail "extraVolumes: metrics-tls is the volume of metrics.tls.secretName" -}}
{{- end -}}
{{- range $v.extraVolumeMounts -}}
{{- if not (has .name $volumes) -}}
{{- fail (printf "extraVolumeMounts: %s is no volume of extraVolumes" .name) -}}
{{- end -}}
{{- end -}}

{{- $set := list "--watch-namespace" -}}
{{- range include "wfe-operator.args" . | fromYamlArray -}}
{{- $set = append $set (splitList "=" . | first) -}}
{{- end -}}
{{- range $v.extraArgs -}}
{{- if has (splitList "=" . | first) $set -}}
{{- fail (printf "extraArgs: %s is set by another value already" .) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* Converts a Go duration into a number, for comparisons: the time that long after a fixed date. */ -}}
{{- define "wfe-operator.moment" -}}
{{ (mustDateModify . (toDate "2006-01-02" "2000-01-01")).UnixMilli }}
{{- end }}

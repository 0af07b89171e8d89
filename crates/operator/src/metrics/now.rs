//! The gauges of the present state. Decisions update them, and so does a tick each second.

use prometheus::{Gauge, GaugeVec, IntGauge, IntGaugeVec, Opts, Registry};
use wfe_core::trouble::OwnCause;
use wfe_core::waiting::Waiting;
use wfe_view::index::Kind;

/// The gauges of the present state.
pub(super) struct Now {
    pub(super) queue_depth: IntGauge,
    pub(super) places: Gauge,
    pub(super) targets: IntGauge,
    pub(super) synced: IntGauge,
    pub(super) leader: IntGauge,
    pub(super) config_info: IntGaugeVec,
    pub(super) config_refused: IntGauge,
    pub(super) waiting: IntGaugeVec,
    pub(super) unfinished: IntGaugeVec,
    pub(super) draining: IntGaugeVec,
    pub(super) retry_waits: IntGauge,
    pub(super) cancels_unanswered: IntGauge,
    pub(super) paused: IntGauge,
    pub(super) paused_namespaces: IntGauge,
    pub(super) own_trouble: IntGaugeVec,
    pub(super) crd_fields_missing: IntGaugeVec,
    pub(super) policy_missing: IntGaugeVec,
    pub(super) watch_silence: GaugeVec,
}

impl Now {
    /// Makes the gauges. Those with known labels start at 0.
    pub(super) fn new() -> prometheus::Result<Self> {
        let gauges = |name: &str, help: &str, labels: &[&str]| IntGaugeVec::new(Opts::new(name, help), labels);
        let now = Self {
            queue_depth: IntGauge::new(
                "workflowexecution_queue_depth",
                "Targets that wait for work or are worked on.",
            )?,
            places: Gauge::new(
                "workflowexecution_places_beside_others",
                "Requests that may be under way at once for one namespace while others ask too.",
            )?,
            targets: IntGauge::new("workflowexecution_targets", "Targets that have an execution or a run.")?,
            synced: IntGauge::new("workflowexecution_caches_synced", "1 when the caches hold the first full lists.")?,
            leader: IntGauge::new(
                "workflowexecution_leader",
                "1 in the replica that decides and writes; 0 in those that follow.",
            )?,
            config_info: gauges(
                "workflowexecution_config_info",
                "1, with the resourceVersion of the ConfigMap that is in force, or none.",
                &["version"],
            )?,
            config_refused: IntGauge::new(
                "workflowexecution_config_refused",
                "1 while the newest version of the ConfigMap is refused and an older configuration is in force.",
            )?,
            waiting: gauges(
                "workflowexecution_waiting",
                "Executions that are undecided because something is in the way, by reason of the condition Waiting.",
                &["reason"],
            )?,
            unfinished: gauges(
                "workflowexecution_unfinished",
                "Executions that are Pending or Running, by namespace; beyond 1,000 namespaces the others share one series.",
                &["namespace", "phase"],
            )?,
            draining: gauges(
                "workflowexecution_draining_targets",
                "Targets on which nothing runs and something of a run is left, by whether that is so for longer than the \
                 drain deadline.",
                &["slow"],
            )?,
            retry_waits: IntGauge::new(
                "workflowexecution_retry_waits",
                "Executions that are Running and wait for their next attempt; each holds its target.",
            )?,
            cancels_unanswered: IntGauge::new(
                "workflowexecution_cancels_unanswered",
                "Runs that were to stop more than a minute ago, and that Tekton does not stop; each holds its target.",
            )?,
            paused: IntGauge::new(
                "workflowexecution_paused",
                "1 while nothing new starts anywhere, by the ConfigMap or the flag.",
            )?,
            paused_namespaces: IntGauge::new(
                "workflowexecution_paused_namespaces",
                "Watched namespaces in which nothing new starts.",
            )?,
            own_trouble: gauges(
                "workflowexecution_operator_trouble_targets",
                "Targets that wait for the operator's own trouble, such as a right that its account lacks, by cause.",
                &["cause"],
            )?,
            crd_fields_missing: gauges(
                "workflowexecution_crd_fields_missing",
                "Fields that a CRD of the cluster lacks and that decisions do not rest on, by CRD.",
                &["crd"],
            )?,
            policy_missing: gauges(
                "workflowexecution_policy_missing",
                "1 while an admission policy that ships, or its binding, is missing or is not as it ships, by policy.",
                &["policy"],
            )?,
            watch_silence: GaugeVec::new(
                Opts::new(
                    "workflowexecution_watch_silence_seconds",
                    "Time since a watch was last heard of, by resource; the API server sends a bookmark every minute.",
                ),
                &["resource"],
            )?,
        };
        for reason in Waiting::REASONS {
            let _ = now.waiting.with_label_values(&[reason]);
        }
        for cause in OwnCause::ALL {
            let _ = now.own_trouble.with_label_values(&[cause.reason()]);
        }
        for slow in [false, true] {
            let _ = now.draining.with_label_values(&[slow_label(slow)]);
        }
        for kind in Kind::ALL {
            let _ = now.watch_silence.with_label_values(&[kind.label()]);
        }
        Ok(now)
    }

    /// Registers the gauges.
    pub(super) fn register(&self, registry: &Registry) -> prometheus::Result<()> {
        registry.register(Box::new(self.queue_depth.clone()))?;
        registry.register(Box::new(self.places.clone()))?;
        registry.register(Box::new(self.targets.clone()))?;
        registry.register(Box::new(self.synced.clone()))?;
        registry.register(Box::new(self.leader.clone()))?;
        registry.register(Box::new(self.config_info.clone()))?;
        registry.register(Box::new(self.config_refused.clone()))?;
        registry.register(Box::new(self.waiting.clone()))?;
        registry.register(Box::new(self.unfinished.clone()))?;
        registry.register(Box::new(self.draining.clone()))?;
        registry.register(Box::new(self.retry_waits.clone()))?;
        registry.register(Box::new(self.cancels_unanswered.clone()))?;
        registry.register(Box::new(self.paused.clone()))?;
        registry.register(Box::new(self.paused_namespaces.clone()))?;
        registry.register(Box::new(self.own_trouble.clone()))?;
        registry.register(Box::new(self.crd_fields_missing.clone()))?;
        registry.register(Box::new(self.policy_missing.clone()))?;
        registry.register(Box::new(self.watch_silence.clone()))
    }
}

/// Returns the value of the label `slow`.
pub(super) fn slow_label(slow: bool) -> &'static str {
    if slow { "true" } else { "false" }
}

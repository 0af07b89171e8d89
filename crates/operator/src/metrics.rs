//! The operator's metrics. Every label has a limited number of values at a time, and every metric has a help text.

mod blocks;
mod busy;
mod circuits;
mod labels;
mod limits;
mod now;
mod recurring;
mod register;
mod schedules;
mod series;

use std::sync::Arc;
use std::time::Duration;

use prometheus::{
    Encoder, Histogram, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGaugeVec, Opts, Registry,
    TextEncoder,
};
use wfe_api::SkipReason;
use wfe_core::ending::Skip;
use wfe_core::retry::Stop;
use wfe_core::trouble::OwnCause;

use crate::verb::Verb;

pub use blocks::BlockGauges;
use blocks::BlockMetrics;
pub use busy::BusyGauges;
pub use circuits::{CircuitGauges, CircuitMetrics};
pub use labels::{AttemptLabel, OutcomeLabel};
pub use limits::{LimitGauges, LimitMetrics};
use now::Now;
pub use recurring::RecurringGauges;
pub use schedules::{ScheduleGauges, ScheduleMetrics};
use wfe_view::index::{EndPhase, EndShown, Kind};

/// Why a decision was not carried out, as a label.
pub const CAUSES: [&str; 12] = [
    "changed",
    "refuted",
    "dropped",
    "timeout",
    "transport",
    "forbidden",
    "conflict",
    "invalid",
    "throttled",
    "server",
    "refused",
    "lease",
];
/// The cause for a panic.
pub const PANIC: &str = "panic";

/// The operator's metrics. Cheap to clone.
#[derive(Clone)]
pub struct Metrics(Arc<Inner>);

struct Inner {
    registry: Registry,
    executions: IntCounterVec,
    duration: HistogramVec,
    attempts: IntCounterVec,
    retry_stops: IntCounterVec,
    skips: IntCounterVec,
    backoff_skips: IntCounterVec,
    blocks: BlockMetrics,
    recurring_successes: IntGaugeVec,
    runs_created: IntCounter,
    decisions: Histogram,
    performs: Histogram,
    errors: IntCounterVec,
    api_requests: IntCounterVec,
    deliveries: IntCounterVec,
    cut_objects: IntCounterVec,
    events_lost: IntCounter,
    foreign_runs: IntCounter,
    slow_drains: IntCounter,
    expired: IntCounter,
    schedules: ScheduleMetrics,
    circuits: CircuitMetrics,
    limits: LimitMetrics,
    now: Now,
}

impl Metrics {
    /// Makes and registers all metrics.
    ///
    /// # Errors
    /// Never in a released build: names and labels are constants, and a test registers them.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let counters = |name: &str, help: &str, labels: &[&str]| IntCounterVec::new(Opts::new(name, help), labels);
        // Workflows take from a second to the longest time-out, 24 h.
        let workflow_buckets = vec![1., 2., 5., 10., 30., 60., 120., 300., 600., 1800., 3600., 14400., 86400.];
        let inner = Inner {
            executions: counters("workflowexecution_total", "Executions that ended, by outcome.", &["outcome"])?,
            duration: HistogramVec::new(
                HistogramOpts::new(
                    "workflowexecution_duration_seconds",
                    "Time from startTime to completionTime of executions that ran, by outcome.",
                )
                .buckets(workflow_buckets),
                &["outcome"],
            )?,
            attempts: counters(
                "workflowexecution_attempts_total",
                "Attempts that ended, of executions with a retry policy, by outcome.",
                &["outcome"],
            )?,
            retry_stops: counters(
                "workflowexecution_retry_stops_total",
                "Executions with a retry policy that failed, by the reason why there is no other attempt.",
                &["reason"],
            )?,
            skips: counters("workflowexecution_skip_total", "Executions that were skipped, by reason.", &["reason"])?,
            backoff_skips: counters(
                "workflowexecution_backoff_skip_total",
                "Executions that were skipped for failures before anything ran: while the target is backed off from, and \
                 once they are too many.",
                &["reason"],
            )?,
            blocks: BlockMetrics::new()?,
            recurring_successes: recurring::gauge()?,
            runs_created: IntCounter::new(
                "workflowexecution_pipelinerun_creation_total",
                "PipelineRuns that were created, pending; a withdrawn one counts too.",
            )?,
            decisions: Histogram::with_opts(
                HistogramOpts::new(
                    "workflowexecution_decision_duration_seconds",
                    "Time of one decision on one target.",
                )
                .buckets(prometheus::exponential_buckets(1e-6, 4.0, 10)?),
            )?,
            performs: Histogram::with_opts(
                HistogramOpts::new(
                    "workflowexecution_reconcile_duration_seconds",
                    "Time to perform what one decision asked for, requests included.",
                )
                .buckets(prometheus::exponential_buckets(0.001, 2.0, 14)?),
            )?,
            errors: counters(
                "workflowexecution_reconcile_errors_total",
                "Actions that could not be performed and are tried again, by cause.",
                &["cause"],
            )?,
            api_requests: counters(
                "workflowexecution_api_requests_total",
                "Requests to the API server but for lists and watches, by verb, resource and code (0: no answer).",
                &["verb", "resource", "code"],
            )?,
            deliveries: counters(
                "workflowexecution_watch_deliveries_total",
                "Objects and changes that the watches have delivered, by resource.",
                &["resource"],
            )?,
            cut_objects: counters(
                "workflowexecution_unread_objects_total",
                "Objects that lists and watches have brought and of which a part could not be read, by resource.",
                &["resource"],
            )?,
            events_lost: IntCounter::new(
                "workflowexecution_events_lost_total",
                "Kubernetes events that were given up; the conditions hold the truth.",
            )?,
            foreign_runs: IntCounter::new(
                "workflowexecution_foreign_pipelineruns_total",
                "PipelineRuns with a name of ours that no WorkflowExecution owns; they are left alone.",
            )?,
            slow_drains: IntCounter::new(
                "workflowexecution_drain_slow_total",
                "Targets that were still draining after the drain deadline.",
            )?,
            expired: IntCounter::new(
                "workflowexecution_expired_total",
                "Executions that were removed, as their time to live was over.",
            )?,
            schedules: ScheduleMetrics::new()?,
            circuits: CircuitMetrics::new()?,
            limits: LimitMetrics::new()?,
            now: Now::new()?,
            registry,
        };
        inner.register()?;
        Ok(Self(Arc::new(inner)))
    }

    /// Counts an execution that ended, with the duration of its run, if it had one.
    pub fn ended(&self, outcome: OutcomeLabel, ran_for: Option<Duration>) {
        self.0.executions.with_label_values(&[outcome.as_str()]).inc();
        if let Some(ran_for) = ran_for {
            self.0.duration.with_label_values(&[outcome.as_str()]).observe(ran_for.as_secs_f64());
        }
    }

    /// Counts an attempt that ended.
    pub fn attempt(&self, outcome: AttemptLabel) {
        self.0.attempts.with_label_values(&[outcome.as_str()]).inc();
    }

    /// Counts an execution with a retry policy that is not tried again.
    pub fn retry_stopped(&self, stop: &Stop) {
        self.0.retry_stops.with_label_values(&[stop.reason()]).inc();
    }

    /// Counts a skipped execution.
    pub fn skipped(&self, skip: &Skip) {
        self.skipped_for(skip.reason(), matches!(skip, Skip::Backoff { .. } | Skip::ExhaustedRetries { .. }));
    }

    /// Counts an end that another process wrote and did not announce.
    pub fn end_shown(&self, end: &EndShown) {
        match end.phase {
            EndPhase::Completed => self.ended(OutcomeLabel::Completed, end.ran_for),
            EndPhase::Failed => self.ended(OutcomeLabel::Failed, end.ran_for),
            EndPhase::Skipped { reason, backs_off } => {
                self.skipped_for(reason.as_str(), backs_off || reason == SkipReason::ExhaustedRetries);
            }
        }
    }

    fn skipped_for(&self, reason: &'static str, follows_failures: bool) {
        self.ended(OutcomeLabel::Skipped, None);
        self.0.skips.with_label_values(&[reason]).inc();
        if follows_failures {
            self.0.backoff_skips.with_label_values(&[reason]).inc();
        }
    }

    /// Returns the gauges of the blocks of each target.
    #[must_use]
    pub fn blocks(&self) -> BlockGauges {
        self.0.blocks.gauges()
    }

    /// Returns the gauge of workflows that succeed on one target again and again.
    #[must_use]
    pub fn recurring(&self) -> RecurringGauges {
        RecurringGauges::new(self.0.recurring_successes.clone())
    }

    /// Returns the gauges of waiting and draining.
    #[must_use]
    pub fn busy(&self) -> BusyGauges {
        BusyGauges::new(&self.0.now)
    }

    /// Returns the metrics of schedules.
    #[must_use]
    pub fn schedules(&self) -> &ScheduleMetrics {
        &self.0.schedules
    }

    /// Returns the metrics of circuits.
    #[must_use]
    pub fn circuits(&self) -> &CircuitMetrics {
        &self.0.circuits
    }

    /// Returns the gauges of limits.
    #[must_use]
    pub fn limits(&self) -> LimitGauges {
        self.0.limits.gauges()
    }

    /// Counts a created run.
    pub fn run_created(&self) {
        self.0.runs_created.inc();
    }

    /// Records how long a decision took.
    pub fn decided(&self, took: Duration) {
        self.0.decisions.observe(took.as_secs_f64());
    }

    /// Records how long the actions of a decision took.
    pub fn performed(&self, took: Duration) {
        self.0.performs.observe(took.as_secs_f64());
    }

    /// Counts an action that is tried again.
    pub fn error(&self, cause: &'static str) {
        self.0.errors.with_label_values(&[cause]).inc();
    }

    /// Sets the gauges of the engine: queue, targets, synced, and the places of a namespace while other namespaces have
    /// work.
    pub fn load(&self, queue_depth: usize, places: f64, targets: usize, synced: bool) {
        self.0.now.queue_depth.set(i64::try_from(queue_depth).unwrap_or(i64::MAX));
        self.0.now.places.set(places);
        self.0.now.targets.set(i64::try_from(targets).unwrap_or(i64::MAX));
        self.0.now.synced.set(i64::from(synced));
    }

    /// Sets whether this replica leads.
    pub fn leads(&self, leads: bool) {
        self.0.now.leader.set(i64::from(leads));
    }

    /// Sets whether everything is paused, and how many namespaces are.
    pub fn paused(&self, everything: bool, namespaces: usize) {
        self.0.now.paused.set(i64::from(everything));
        self.0.now.paused_namespaces.set(i64::try_from(namespaces).unwrap_or(i64::MAX));
    }

    /// Sets how many targets wait because of a fault of the operator itself.
    pub fn own_trouble(&self, cause: OwnCause, targets: usize) {
        let targets = i64::try_from(targets).unwrap_or(i64::MAX);
        self.0.now.own_trouble.with_label_values(&[cause.reason()]).set(targets);
    }

    /// Sets how many fields that are not decisive a CRD lacks.
    pub fn crd_fields_missing(&self, crd: &str, fields: usize) {
        let fields = i64::try_from(fields).unwrap_or(i64::MAX);
        self.0.now.crd_fields_missing.with_label_values(&[crd]).set(fields);
    }

    /// Sets whether a shipped admission policy is missing or changed.
    pub fn policy_missing(&self, policy: &str, missing: bool) {
        self.0.now.policy_missing.with_label_values(&[policy]).set(i64::from(missing));
    }

    /// Sets for how long a watch has been silent.
    pub fn silent(&self, kind: Kind, silence: Duration) {
        self.0.now.watch_silence.with_label_values(&[kind.label()]).set(silence.as_secs_f64());
    }

    /// Counts a request.
    pub fn api_request(&self, verb: Verb, resource: &'static str, code: u16) {
        self.0.api_requests.with_label_values(&[&verb.to_string(), resource, &code.to_string()]).inc();
    }

    /// Counts a delivery of a watch.
    pub fn delivered(&self, kind: Kind) {
        self.0.deliveries.with_label_values(&[kind.label()]).inc();
    }

    /// Counts an object of which a part could not be read.
    pub fn object_cut(&self, kind: Kind) {
        self.0.cut_objects.with_label_values(&[kind.label()]).inc();
    }

    /// Counts an event that was given up.
    pub fn event_lost(&self) {
        self.0.events_lost.inc();
    }

    /// Counts a foreign run that has a name of ours.
    pub fn foreign_run(&self) {
        self.0.foreign_runs.inc();
    }

    /// Sets which version of the configuration is in force.
    pub fn config_in_force(&self, version: &str) {
        self.0.now.config_info.reset();
        self.0.now.config_info.with_label_values(&[version]).set(1);
    }

    /// Sets whether the newest version of the configuration is refused.
    pub fn config_refused(&self, refused: bool) {
        self.0.now.config_refused.set(i64::from(refused));
    }

    /// Counts a target that does not drain in time.
    pub fn drain_slow(&self) {
        self.0.slow_drains.inc();
    }

    /// Counts a removed execution.
    pub fn expired(&self) {
        self.0.expired.inc();
    }

    /// Renders all metrics in the text format of Prometheus.
    ///
    /// # Errors
    /// If a metric cannot be encoded.
    pub fn render(&self) -> prometheus::Result<Vec<u8>> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.0.registry.gather(), &mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perform::PerformError;
    use wfe_core::ending::Remediation;
    use wfe_core::name::{ExecutionId, Uid};
    use wfe_view::call::CallError;

    #[test]
    fn every_metric_registers_and_shows_its_help() {
        let metrics = Metrics::new().unwrap();
        let execution = ExecutionId { namespace: "ops".into(), name: "w".into(), uid: Uid::new("u") };
        let latest = Remediation {
            execution,
            workflow_id: "w".into(),
            completed_at: wfe_core::Time::UNIX_EPOCH,
            completed: false,
            is_dated: true,
        };
        metrics.skipped(&Skip::Backoff { latest: latest.clone(), failures: 1, until: None });
        metrics.skipped(&Skip::Cooldown { last: latest, cooldown: Duration::from_secs(1), until: None });
        metrics.ended(OutcomeLabel::Completed, Some(Duration::from_secs(3)));
        metrics.api_request(Verb::Get, "pipelineruns", 404);
        metrics.config_in_force("7");
        metrics.config_in_force("8");
        metrics.attempt(AttemptLabel::Retried);
        metrics.retry_stopped(&Stop::Exhausted);
        metrics.paused(true, 2);
        metrics.own_trouble(OwnCause::LacksRight, 3);
        metrics.silent(Kind::Pod, Duration::from_millis(1500));
        let text = String::from_utf8(metrics.render().unwrap()).unwrap();
        for line in [
            "workflowexecution_total{outcome=\"Completed\"} 1",
            "workflowexecution_total{outcome=\"Skipped\"} 2",
            "workflowexecution_skip_total{reason=\"ResourceBusy\"} 0",
            "workflowexecution_skip_total{reason=\"RecentlyRemediated\"} 2",
            "workflowexecution_backoff_skip_total{reason=\"RecentlyRemediated\"} 1",
            "workflowexecution_backoff_skip_total{reason=\"ExhaustedRetries\"} 0",
            "workflowexecution_blocked_targets{reason=\"PreviousExecutionFailed\"} 0",
            "workflowexecution_duration_seconds_sum{outcome=\"Completed\"} 3",
            "workflowexecution_api_requests_total{code=\"404\",resource=\"pipelineruns\",verb=\"get\"} 1",
            "workflowexecution_config_info{version=\"8\"} 1",
            "workflowexecution_config_refused 0",
            "workflowexecution_attempts_total{outcome=\"Retried\"} 1",
            "workflowexecution_attempts_total{outcome=\"Completed\"} 0",
            "workflowexecution_retry_stops_total{reason=\"Exhausted\"} 1",
            "workflowexecution_retry_stops_total{reason=\"Ran\"} 0",
            "workflowexecution_retry_waits 0",
            "workflowexecution_cancels_unanswered 0",
            "workflowexecution_operator_trouble_targets{cause=\"Examining\"} 0",
            "workflowexecution_waiting{reason=\"Paused\"} 0",
            "workflowexecution_draining_targets{slow=\"true\"} 0",
            "workflowexecution_paused 1",
            "workflowexecution_paused_namespaces 2",
            "workflowexecution_operator_trouble_targets{cause=\"OperatorForbidden\"} 3",
            "workflowexecution_operator_trouble_targets{cause=\"WriteDropped\"} 0",
            "workflowexecution_watch_silence_seconds{resource=\"pods\"} 1.5",
            "workflowexecution_watch_silence_seconds{resource=\"taskruns\"} 0",
            "workflowexecution_reconcile_errors_total{cause=\"forbidden\"} 0",
            "workflowexecution_reconcile_errors_total{cause=\"panic\"} 0",
            "# HELP workflowexecution_queue_depth ",
            "# HELP process_resident_memory_bytes ",
        ] {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn every_cause_of_an_error_is_listed() {
        let call = |source| PerformError::Call { what: "try".into(), source, unconfirmed: None };
        let refused = |code| call(CallError::Refused(Box::new(kube::core::Status { code, ..Default::default() })));
        let what = || "it".to_owned();
        let all = [
            PerformError::Changed { what: what() },
            PerformError::Refuted { what: what() },
            PerformError::Dropped { what: what(), fields: what() },
            call(CallError::TimedOut(Duration::from_secs(1))),
            call(CallError::Transport(Box::new(kube::Error::LinesCodecMaxLineLengthExceeded))),
            refused(403),
            refused(409),
            refused(422),
            refused(429),
            refused(500),
            refused(400),
            call(CallError::NotLeading),
        ];
        assert_eq!(all.map(|error| error.label()), CAUSES);
    }
}

//! `kubectl wfe schedule resume`: lifts a suspension by a person, and the pause or values of a triage, in one patch.
//!
//! The API server decides whether the caller may lift a triage; this module checks no permission.

use anyhow::{Result, bail};
use kube::api::DynamicObject;
use serde_json::{Value, json};
use wfe_api::workflow_schedule::TriageState;
use wfe_view::call::CallError;
use wfe_view::index::Kind;
use wfe_view::source::objects;

use super::{describe, get, patch, said};
use crate::cli::ClusterArgs;
use crate::connection::Connection;
use crate::output::{line, output};

/// The triage that has paused a schedule, or the latest triage if values of a triage apply in place of those of the
/// spec.
#[derive(Debug, PartialEq)]
struct OpenPause<'a> {
    /// The name of the triage, which is the name of the failed child.
    of: &'a str,
    state: TriageState,
    why: Option<&'a str>,
    /// Whether a person has resumed it already, and the operator has not recorded that yet.
    is_resumed: bool,
}

/// Runs the command. Always yes: neither a suspension nor a triage holds the schedule any more.
pub(super) async fn run(cluster: &ClusterArgs, name: &str, reason: Option<&str>) -> Result<bool> {
    let connection = Connection::open(cluster).await?;
    let schedules = objects(&connection.client, Kind::Schedule, Some(&connection.namespace));
    let found = get(&schedules, &connection.namespace, name).await?;
    let shown = describe(&found);
    let mut out = output();
    let is_suspended = found.data["spec"]["suspend"] == true;
    let pause = OpenPause::of(&found);
    if let Some(pause) = pause.as_ref().filter(|it| it.is_resumed && !is_suspended) {
        let of = line(pause.of);
        writeln!(out, "{shown} is resumed already, and no operator has recorded that yet: spec.resume names {of}.")?;
        return Ok(true);
    }
    let pause = pause.filter(|it| !it.is_resumed);
    if !is_suspended && pause.is_none() {
        writeln!(out, "{shown} is neither suspended nor paused or adjusted by a triage; nothing was written.")?;
        return Ok(true);
    }
    let lifted = match (&pause, reason) {
        (None, _) => None,
        (Some(pause), None) => bail!("{shown} was not changed: {}", pause.asks_why()),
        (Some(pause), Some(reason)) => Some((pause, reason, connection.who_am_i().await?)),
    };
    let lifts = lifted.as_ref().map(|(pause, reason, user)| (pause.of, *reason, &**user));
    if let Err(error) = patch(&schedules, &found, &change(is_suspended, lifts)).await {
        bail!("{shown} was not changed: {}", refused(&error, lifted.is_some()));
    }
    let as_whom = lifted.as_ref().map(|(_, _, user)| format!(" as {}", line(user))).unwrap_or_default();
    let anew = "its plan begins anew from now, and nothing of the time between is made up for";
    writeln!(out, "{shown} is resumed{as_whom}: {anew}.")?;
    match &lifted {
        Some((pause, ..)) => writeln!(out, "{}", pause.is_lifted())?,
        None if reason.is_some() => writeln!(out, "The reason was not kept: there is no triage to lift.")?,
        None => {}
    }
    Ok(true)
}

impl<'a> OpenPause<'a> {
    /// Reads it from the status. None if no triage has paused the schedule and none of its values applies.
    fn of(schedule: &'a DynamicObject) -> Option<Self> {
        let triage = &schedule.data["status"]["triage"];
        let (of, state) = (triage["of"].as_str()?, triage["state"].as_str()?);
        let state = match state {
            _ if state == TriageState::Paused.as_str() => TriageState::Paused,
            _ if state == TriageState::Adjusted.as_str() => TriageState::Adjusted,
            _ if schedule.data["status"]["adjust"].is_object() => TriageState::Adjusted,
            _ => return None,
        };
        let is_resumed = schedule.data["spec"]["resume"]["triage"] == of;
        Some(Self { of, state, why: triage["why"].as_str(), is_resumed })
    }

    /// Returns the message that asks for a reason, and explains what the reason is for.
    fn asks_why(&self) -> String {
        let why = self.why.map(|why| format!(": {}", line(why))).unwrap_or_default();
        let has = match self.state {
            TriageState::Paused => "paused it",
            _ => "put other values in place of those of its spec",
        };
        format!(
            "the triage of {} has {has}{why}; add --reason with why it may go on, which is kept with your name",
            line(self.of)
        )
    }

    fn is_lifted(&self) -> String {
        let of = line(self.of);
        match self.state {
            TriageState::Paused => format!("The pause by the triage of {of} is lifted."),
            _ => format!("The values that triages up to that of {of} had set are gone: it runs as its spec says."),
        }
    }
}

/// Makes the change: it lifts a suspension, and sets the triage, reason and user of a resume.
fn change(lifts_suspension: bool, resume: Option<(&str, &str, &str)>) -> Value {
    let mut change = json!({"spec": {}});
    if lifts_suspension {
        change["spec"]["suspend"] = json!(false);
    }
    if let Some((triage, reason, user)) = resume {
        change["spec"]["resume"] = json!({"triage": triage, "reason": reason, "resumedBy": user});
    }
    change
}

/// Returns why the schedule was not resumed, and what to do.
fn refused(error: &CallError, lifts_triage: bool) -> String {
    match error {
        CallError::Refused(status) if lifts_triage && status.code == 403 => {
            format!("{}; the ClusterRole wfe-edit or wfe-clear gives the rights", status.message)
        }
        _ => said(error),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bound;
    use super::*;

    fn schedule(spec: &Value, triage: &Value) -> DynamicObject {
        let metadata = json!({"namespace": "ops", "name": "a", "uid": "u", "resourceVersion": "7"});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": {"triage": triage}})).unwrap()
    }

    #[test]
    fn a_triage_stands_while_it_has_paused_or_adjusted_the_schedule() {
        for state in TriageState::ALL {
            let stands = matches!(state, TriageState::Paused | TriageState::Adjusted);
            let triage = json!({"of": "a-1", "state": state.as_str(), "why": "it breaks"});
            let found = schedule(&json!({}), &triage);
            let expected = stands.then_some(OpenPause { of: "a-1", state, why: Some("it breaks"), is_resumed: false });
            assert_eq!(OpenPause::of(&found), expected, "{state}");
        }
        assert_eq!(OpenPause::of(&schedule(&json!({}), &Value::Null)), None);
        // To lift the values of an earlier triage, the latest one is named.
        let mut noted = schedule(&json!({}), &json!({"of": "a-2", "state": "Noted"}));
        noted.data["status"]["adjust"] = json!({"timeout": "1h"});
        assert_eq!(OpenPause::of(&noted).map(|it| (it.of, it.state)), Some(("a-2", TriageState::Adjusted)));
    }

    #[test]
    fn who_resumes_names_the_triage_and_one_that_is_resumed_needs_nothing() {
        let triage = json!({"of": "a-2", "state": "Paused"});
        let resumed = |of: &str| {
            let found = schedule(&json!({"resume": {"triage": of}}), &triage);
            OpenPause::of(&found).map(|it| it.is_resumed)
        };
        assert_eq!((resumed("a-2"), resumed("a-1")), (Some(true), Some(false)));
    }

    #[test]
    fn one_patch_lifts_all_that_is_to_be_lifted_on_what_was_read() {
        let found = schedule(&json!({"suspend": true}), &Value::Null);
        let resume = json!({"triage": "a-1", "reason": "looked", "resumedBy": "jo"});
        for (suspended, lifts, spec) in [
            (true, None, json!({"suspend": false})),
            (false, Some(("a-1", "looked", "jo")), json!({"resume": resume})),
            (true, Some(("a-1", "looked", "jo")), json!({"suspend": false, "resume": resume})),
        ] {
            let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "spec": spec});
            assert_eq!(bound(&found, &change(suspended, lifts)), expected);
        }
    }

    #[test]
    fn it_says_what_it_lifts_and_that_a_reason_is_needed() {
        let pause = |state| OpenPause { of: "a-1", state, why: Some("broke\u{1b}[2J"), is_resumed: false };
        assert_eq!(
            pause(TriageState::Paused).asks_why(),
            "the triage of a-1 has paused it: broke\\u{1b}[2J; add --reason with why it may go on, which is kept with \
             your name"
        );
        assert_eq!(pause(TriageState::Paused).is_lifted(), "The pause by the triage of a-1 is lifted.");
        let adjusted = OpenPause { why: None, ..pause(TriageState::Adjusted) };
        assert!(adjusted.asks_why().contains("has put other values in place of those of its spec; add --reason"));
        assert!(adjusted.is_lifted().ends_with("it runs as its spec says."));
    }

    #[test]
    fn a_refusal_names_who_could_give_the_right() {
        let refusal = |code| {
            let status = kube::core::Status { code, message: "no".to_owned(), ..Default::default() };
            CallError::Refused(Box::new(status))
        };
        assert!(refused(&refusal(403), true).contains("no; the ClusterRole wfe-edit or wfe-clear gives the rights"));
        assert!(refused(&refusal(403), false).contains("wfe-edit"));
        assert!(refused(&refusal(409), true).contains("it has changed since it was read; try again"));
    }
}

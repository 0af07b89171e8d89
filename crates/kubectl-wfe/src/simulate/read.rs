//! Reads a scenario from a file. Each mistake is told with its line.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use wfe_core::reason::FailureReason;
use wfe_core::target::TargetName;
use wfe_settings::table::TABLE;
use wfe_tekton::parse_moment;

use super::node::{Fault, Fields, Node, unknown};
use super::scenario::{Act, Failing, Scenario, Workflow};

/// The start, if the file has none: a Monday, at midnight.
const START: &str = "2026-06-01T00:00:00Z";

impl Scenario {
    /// Reads a scenario. `folder` holds the files that it names.
    pub(super) fn read(text: &str, folder: &Path) -> Result<Self, Fault> {
        let root = Node::parse(text)?;
        let known = ["start", "policy", "workflows", "arrive", "schedules", "people"];
        let fields = root.fields("", &known)?;
        let start = fields.read("start", |node, path| match parse_moment(&node.text(path)?) {
            Some(start) => Ok(start),
            None => node.fault(format!("{path} must be a time such as {START}")),
        })?;
        let start = start.or_else(|| parse_moment(START)).unwrap_or_default();
        let workflows = fields.read("workflows", |node, path| {
            let entries = node.map(path)?.iter();
            entries.map(|(name, _, node)| Ok((name.clone(), workflow(node, &format!("{path}.{name}"))?))).collect()
        })?;
        let mut scenario = Self {
            start,
            keys: fields.read("policy", policy_keys)?.unwrap_or_default(),
            workflows: workflows.unwrap_or_default(),
            arrivals: Vec::new(),
            schedules: Vec::new(),
            people: Vec::new(),
        };
        scenario.policy(None)?;
        for (path, node) in entries(&fields, "arrive")? {
            let arrival = scenario.arrival(node, &path)?;
            scenario.arrivals.push(arrival);
        }
        for (path, node) in entries(&fields, "schedules")? {
            scenario.add_schedules(node, &path, folder)?;
        }
        for (path, node) in entries(&fields, "people")? {
            scenario.people.push(act(node, &path)?);
        }
        if scenario.arrivals.is_empty() && scenario.schedules.is_empty() {
            return root.fault("nothing happens: write at least one entry under arrive or schedules");
        }
        Ok(scenario)
    }
}

fn entries<'a>(fields: &Fields<'a>, key: &str) -> Result<Vec<(String, &'a Node)>, Fault> {
    let list = fields.read(key, Node::list)?.unwrap_or_default();
    Ok((1..).zip(list).map(|(n, node)| (format!("{key}[{n}]"), node)).collect())
}

/// Reads the keys of a policy. A key that the operator does not know would do nothing.
fn policy_keys(node: &Node, path: &str) -> Result<BTreeMap<String, (u64, String)>, Fault> {
    let known: Vec<&str> = TABLE.iter().map(|row| row.key).collect();
    node.fields(path, &known)?;
    let text =
        |(key, line, node): &(String, u64, Node)| Ok((key.clone(), (*line, node.text(&format!("{path}.{key}"))?)));
    node.map(path)?.iter().map(text).collect()
}

fn workflow(node: &Node, path: &str) -> Result<Workflow, Fault> {
    let fields = node.fields(path, &["takes", "drains", "version", "image", "fails"])?;
    let listed = fields.read("fails", Node::list)?.unwrap_or_default();
    let fails = (1..).zip(listed).map(|(n, node)| failing(node, &format!("{path}.fails[{n}]")));
    Ok(Workflow {
        version: fields.read("version", Node::text)?.unwrap_or_else(|| "1".to_owned()),
        image: fields.read("image", Node::text)?,
        takes: fields.read("takes", Node::duration)?.unwrap_or(Duration::from_mins(1)),
        drains: fields.read("drains", Node::duration)?.unwrap_or_default(),
        fails: fails.collect::<Result<_, Fault>>()?,
    })
}

fn failing(node: &Node, path: &str) -> Result<Failing, Fault> {
    let known = ["from", "to", "every", "attempts", "as", "ran", "exitCode", "after", "says", "results"];
    let fields = node.fields(path, &known)?;
    let reason = fields.read("as", reason)?.unwrap_or(FailureReason::Unknown);
    let exit_code = fields.read("exitCode", |node, path| {
        let code = node.count(path)?;
        i32::try_from(code).or_else(|_| node.fault(format!("{path} must be at most {}", i32::MAX)))
    })?;
    let ran = fields.read("ran", |node, path| match node.text(path)?.as_str() {
        "true" => Ok(true),
        "false" => Ok(false),
        other => node.fault(format!("{path}: \"{other}\" must be true or false")),
    })?;
    let from = fields.read("from", Node::duration)?.unwrap_or_default();
    let to = fields.read("to", Node::duration)?;
    if let (Some(to), Some(node)) = (to, fields.get("to"))
        && to <= from
    {
        return node.fault(format!("{path}: \"to\" must be later than \"from\""));
    }
    let results = fields.read("results", |node, path| {
        let text = |(key, _, node): &(String, u64, Node)| Ok((key.clone(), node.text(&format!("{path}.{key}"))?));
        node.map(path)?.iter().map(text).collect::<Result<_, Fault>>()
    })?;
    let ran = ran.unwrap_or(
        exit_code.is_some()
            || matches!(reason, FailureReason::OomKilled | FailureReason::DeadlineExceeded | FailureReason::Unknown),
    );
    let default = if ran { "step work failed" } else { "nothing of it started" };
    Ok(Failing {
        from,
        to,
        every: fields.read("every", Node::count)?,
        attempts: fields.read("attempts", Node::count)?,
        reason,
        ran,
        exit_code,
        after: fields.read("after", Node::duration)?,
        says: fields.read("says", Node::text)?.unwrap_or_else(|| default.to_owned()),
        results: results.unwrap_or_default(),
    })
}

fn reason(node: &Node, path: &str) -> Result<FailureReason, Fault> {
    let text = node.text(path)?;
    let known = FailureReason::ALL.map(FailureReason::as_str);
    let found = FailureReason::ALL.into_iter().find(|known| known.as_str() == text);
    found.map_or_else(|| node.fault(unknown(&text, &format!(" in {path}"), &known)), Ok)
}

fn act(node: &Node, path: &str) -> Result<(Duration, Act), Fault> {
    let fields = node.fields(path, &["at", "clear", "cancel", "pause", "resume"])?;
    let at = fields.need("at")?.duration(&fields.path("at"))?;
    let text = |key| fields.read(key, Node::text);
    let act = match (text("clear")?, text("cancel")?, text("pause")?, text("resume")?) {
        (Some(target), None, None, None) => match TargetName::parse(&target) {
            Ok(target) => Act::Clear(target),
            Err(error) => return node.fault(format!("{path}.clear: \"{target}\" {error}")),
        },
        (None, Some(name), None, None) if name.contains('/') => Act::Cancel(name),
        (None, Some(name), None, None) => Act::Cancel(format!("default/{name}")),
        (None, None, Some(namespace), None) => Act::Pause(namespace),
        (None, None, None, Some(namespace)) => Act::Resume(namespace),
        _ => return node.fault(format!("{path} must have one of \"clear\", \"cancel\", \"pause\" and \"resume\"")),
    };
    Ok((at, act))
}

//! `kubectl wfe lint`: finds mistakes in files before they make a run fail. It works without a cluster.
//!
//! The rules for our own kinds are those of the API server and the operator, from their own code. The rules for a
//! Pipeline check what this operator needs of a workflow.

mod document;
mod finding;
mod ours;
mod pipeline;
mod schema;
mod server;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use serde_json::Value;

use self::document::{Document, Unreadable};
use self::finding::{Findings, Level};
use crate::cli::{ClusterArgs, Format, LintArgs};
use crate::connection::Connection;
use crate::file;
use crate::output::{line, output};

/// The limit of findings of one file: a file with more repeats one mistake.
const MOST: usize = 100;

/// A kind that can be examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Execution,
    Schedule,
    Pipeline,
    Task,
}

impl Kind {
    fn of(object: &Value) -> Option<Self> {
        let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map(|(group, _)| group);
        match (group?, object["kind"].as_str()?) {
            (wfe_api::GROUP, "WorkflowExecution") => Some(Self::Execution),
            (wfe_api::GROUP, "WorkflowSchedule") => Some(Self::Schedule),
            ("tekton.dev", "Pipeline") => Some(Self::Pipeline),
            ("tekton.dev", "Task") => Some(Self::Task),
            _ => None,
        }
    }

    fn examine(self, object: &Value, found: &mut Findings) {
        match self {
            Self::Execution => ours::execution(object, found),
            Self::Schedule => ours::schedule(object, found),
            Self::Pipeline => pipeline::pipeline(object, found),
            Self::Task => pipeline::task(object, found),
        }
    }

    /// Returns the resource, if people create objects of this kind in a cluster for the operator.
    fn resource(self) -> Option<&'static str> {
        match self {
            Self::Execution => Some("workflowexecutions"),
            Self::Schedule => Some("workflowschedules"),
            Self::Pipeline | Self::Task => None,
        }
    }
}

/// An object of a file.
struct Examined {
    document: Document,
    object: Value,
    kind: Option<Kind>,
    found: Findings,
}

/// The answer. `-o json` shows all of it.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    /// How many objects were examined.
    objects: usize,
    errors: usize,
    warnings: usize,
    findings: Vec<Row>,
    /// The objects of other kinds.
    not_checked: Vec<Unchecked>,
    /// The files that could not be read, or about which the API server could not be asked.
    unread: Vec<Unread>,
}

/// A finding with its place.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    level: Level,
    file: String,
    line: u64,
    kind: String,
    name: String,
    field: String,
    message: String,
}

/// An object of another kind.
#[derive(Debug, Serialize)]
struct Unchecked {
    file: String,
    kind: String,
    name: String,
}

/// A file that could not be read.
#[derive(Debug, Serialize)]
struct Unread {
    file: String,
    line: Option<u64>,
    why: String,
}

/// Runs the command. Yes: there is no error.
pub(crate) async fn run(cluster: &ClusterArgs, args: &LintArgs) -> Result<bool> {
    let mut connection = if args.server { Some(Connection::open(cluster).await?) } else { None };
    let mut report = Report::default();
    for file in &args.files {
        match examined(file) {
            Ok(mut objects) => {
                for Examined { object, kind, found, .. } in &mut objects {
                    let resource = kind.and_then(Kind::resource).filter(|_| !found.has_error());
                    let (Some(asked), Some(resource)) = (&connection, resource) else { continue };
                    if let Err(error) = server::ask(asked, resource, object, found).await {
                        let why = format!("cannot ask the API server: {error:#}");
                        report.unread.push(Unread { file: shown(file), line: None, why });
                        connection = None; // the API server would not answer the next question either
                    }
                }
                report.add(&shown(file), objects);
            }
            Err(Unreadable { line, why }) => report.unread.push(Unread { file: shown(file), line, why }),
        }
    }
    match args.output {
        Some(Format::Json) => output().json("Lint", &report)?,
        None => write!(output(), "{}", report.told())?,
    }
    ensure!(report.unread.is_empty(), "{}", report.unread());
    ensure!(
        report.objects > 0,
        "there is nothing to check: the files have no Pipeline, Task, WorkflowExecution or WorkflowSchedule"
    );
    Ok(report.errors == 0)
}

fn shown(file: &Path) -> String {
    if file == Path::new("-") { "stdin".to_owned() } else { file.display().to_string() }
}

fn examined(file: &Path) -> Result<Vec<Examined>, Unreadable> {
    let text = file::read(file).context("it cannot be read");
    examine(&text.map_err(|error| Unreadable { line: None, why: format!("{error:#}") })?)
}

/// Examines all objects of a file.
fn examine(text: &str) -> Result<Vec<Examined>, Unreadable> {
    let examined = Document::all_in(text)?.into_iter().map(|document| {
        let object = document.value();
        let (kind, mut found) = (Kind::of(&object), Findings::default());
        if let Some(kind) = kind {
            kind.examine(&object, &mut found);
        }
        Examined { document, object, kind, found }
    });
    Ok(examined.collect())
}

impl Report {
    /// Adds the objects of a file.
    fn add(&mut self, file: &str, objects: Vec<Examined>) {
        let mut rows = Vec::new();
        for Examined { document, object, kind, found } in objects {
            let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            let name = Some(text("/metadata/name")).filter(|name| !name.is_empty());
            let (name, kind_name) = (name.unwrap_or_else(|| text("/metadata/generateName")), text("/kind"));
            if kind.is_none() {
                self.not_checked.push(Unchecked { file: file.to_owned(), kind: kind_name, name });
                continue;
            }
            self.objects += 1;
            rows.extend(found.0.into_iter().map(|finding| Row {
                level: finding.level,
                file: file.to_owned(),
                line: document.line_of(&finding.field),
                kind: kind_name.clone(),
                name: name.clone(),
                field: finding.field,
                message: finding.says,
            }));
        }
        rows.sort_by_key(|row| (row.line, row.level));
        self.errors += rows.iter().filter(|row| row.level == Level::Error).count();
        self.warnings += rows.iter().filter(|row| row.level == Level::Warning).count();
        rows.truncate(MOST);
        self.findings.extend(rows);
    }

    fn told(&self) -> String {
        let mut text = String::new();
        for Row { level, file, line: at, message, .. } in &self.findings {
            let mark = if *level == Level::Error { 'x' } else { '!' };
            let _ = writeln!(text, "{mark} {}:{at}: {}", line(file), line(message));
        }
        let more = self.errors + self.warnings - self.findings.len();
        if more > 0 {
            let _ = writeln!(text, "  and {more} more of the same files");
        }
        for Unchecked { file, kind, name } in &self.not_checked {
            let _ = writeln!(text, "- {}: not checked: {} {}", line(file), line(kind), line(name));
        }
        let count = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let _ = writeln!(
            text,
            "{}: {}, {}",
            count(self.objects, "object"),
            count(self.errors, "error"),
            count(self.warnings, "warning")
        );
        text
    }

    /// Tells which files could not be read.
    fn unread(&self) -> String {
        let each = self.unread.iter().map(|Unread { file, line, why }| match line {
            Some(line) => format!("{file}:{line}: {why}"),
            None => format!("{file}: {why}"),
        });
        each.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
apiVersion: tekton.dev/v1
kind: Pipeline
metadata:
  name: cleanup
spec:
  params:
    - name: TARGET_RESOURCE
    - name: DIR
      default: /tmp
  tasks:
    - name: clean
      params:
        - {name: TARGET_RESOURCE, value: $(params.TARGET_RESOURCE)}
      taskSpec:
        steps:
          - name: rm
            script: |
              rm -r $(params.DIR)
---
apiVersion: kubernaut.ai/v1alpha1
kind: WorkflowExecution
metadata:
  name: a
spec:
  targetResource: node/n
  workflowRef:
    workflowId: w
    version: 1.0
    containerImage: r.example/w:1
---
apiVersion: v1
kind: ConfigMap
metadata: {name: \"c\\nx f:1\"}
";

    fn report(files: &[(&str, &str)]) -> Report {
        let mut report = Report::default();
        for (name, text) in files {
            report.add(name, examine(text).unwrap());
        }
        report
    }

    #[test]
    fn each_finding_has_its_file_and_line() {
        assert_eq!(
            report(&[("f.yaml", FILE)]).told(),
            "x f.yaml:4: metadata.name is \"cleanup\": the operator runs the Pipeline named \"workflow\"\n\
             ! f.yaml:17: task clean, step rm: $(params.DIR) inside a script is run as a program: use env\n\
             x f.yaml:28: spec.workflowRef.version: must be a text: put it in quotes\n\
             - f.yaml: not checked: ConfigMap c\\nx f:1\n\
             2 objects: 2 errors, 1 warning\n"
        );
    }

    #[test]
    fn a_program_gets_the_same() {
        let json = serde_json::to_value(report(&[("f.yaml", FILE)])).unwrap();
        let first = serde_json::json!({
            "level": "error", "file": "f.yaml", "line": 4, "kind": "Pipeline", "name": "cleanup", "field": "metadata.name",
            "message": "metadata.name is \"cleanup\": the operator runs the Pipeline named \"workflow\"",
        });
        assert_eq!((&json["findings"][0], &json["errors"], &json["warnings"]), (&first, &2.into(), &1.into()));
        assert_eq!(json["notChecked"][0]["kind"], "ConfigMap");
    }

    #[test]
    fn the_same_mistake_many_times_is_counted() {
        let mistakes: Vec<String> = (0..150).map(|nth| format!("  wrong{nth}: 1\n")).collect();
        let schedule = "apiVersion: kubernaut.ai/v1alpha1\nkind: WorkflowSchedule\nmetadata: {name: a}\nspec:\n";
        let report = report(&[("f", &format!("{schedule}{}", mistakes.concat()))]);
        assert_eq!(report.findings.len(), MOST);
        assert!(report.told().contains("more of the same files\n") && report.errors > 150, "{}", report.told());
    }

    /// People copy the samples, so these have neither errors nor warnings.
    #[test]
    fn the_samples_pass() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/samples");
        let mut objects = 0;
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let report = report(&[("f", &std::fs::read_to_string(&path).unwrap())]);
            assert!(report.findings.is_empty(), "{}: {}", path.display(), report.told());
            objects += report.objects;
        }
        assert!(objects > 10, "{objects} objects");
    }
}

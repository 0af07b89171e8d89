//! The pages whose blocks a reader types from top to bottom: the tutorial, and how to write a workflow. Every block is
//! run, and every answer is compared with the page.
//!
//! Only with `WFE_TEST_ALL=1`. `make tutorial` writes the answers anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use regex::Regex;
use tokio::process::{Child, Command};
use wfe_testkit::awaits::ask_until;
use wfe_testkit::{process, repository};

use crate::faults::all;

/// The pages, in this order and on one cluster.
const PAGES: [&str; 2] = ["docs/tutorial.md", "docs/writing-workflows.md"];
/// The page's command that starts the cluster, the program that it calls, and a text in the last line of its output.
/// The test does not use make.
const CLUSTER: (&str, &str, &str) = ("make control-plane ARGS=--no-crd", "control-plane up --no-crd", "# Ctrl-C");
/// The page's command that starts the operator, and a word in its log that shows that the operator leads.
const OPERATOR: (&str, &str) = ("wfe-operator run", "leads");
const OPERATOR_LOG: &str = "operator.log";
/// The page's command that runs the example of an orchestrator, which has been built before the test.
const EXAMPLE: &str = "cargo run --quiet --package wfe-api --example remediation_orchestrator --";
/// How long a program in the foreground may take until it is ready, and until it has ended.
const READY_WITHIN: Duration = Duration::from_mins(2);
/// How long the answer of a reading command may differ from the page, because the objects may not exist yet.
const AGREES_WITHIN: Duration = Duration::from_secs(30);
/// How long a reading command is repeated before its answer is written into the page.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
/// Commands that only read. They can be repeated.
const READS: [&str; 4] = ["kubectl get ", "kubectl wfe status", "kubectl wfe explain", "kubectl wfe schedule explain"];
/// Patterns for text that varies between runs, each with its replacement when answers are compared.
const VARIES: [(&str, &str); 8] = [
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\b(\d+[dhms])+\b", "LONG"),
    (r"127\.0\.0\.1:\d+", "REGISTRY"),
    (r"\S+_[0-9a-f]{4,}\b", "OPERATOR"),
    (r"-1[789]\d{8}\b", "-SLOT"),
    (r"version \d+", "version N"),
    (r"/tmp/\S+", "PATH"),
    (r" +", " "),
];

#[tokio::test]
async fn the_pages_to_type_along_show_what_their_commands_answer() -> Result<()> {
    let writes = env::var_os("WFE_WRITE_TUTORIAL").is_some();
    if !all() && !writes {
        return Ok(());
    }
    let mut reader = Reader::new()?;
    let mut differs = String::new();
    for page in PAGES {
        let path = repository().join(page);
        let text = fs::read_to_string(&path)?;
        let played = reader.play(&text, writes).await.with_context(|| format!("{page}{}", reader.log()))?;
        if writes {
            fs::write(path, played)?;
        } else if played != text {
            write!(differs, "{page}, as its commands answer now:\n{played}")?;
        }
    }
    reader.leave().await?;
    ensure!(differs.is_empty(), "{differs}");
    Ok(())
}

/// A part of a page.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Text, which is not run.
    Text(String),
    /// A block with a file: its name and its lines, including the comment with the name.
    File { name: String, text: String },
    /// A block of commands without answers.
    Script(String),
    /// A block of commands, each with its answer.
    Answers(Vec<(String, String)>),
}

/// Splits a page into parts. A YAML block is a file if its first line is a comment with a file name.
fn parts(page: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(language) = line.strip_prefix("```").filter(|it| ["sh", "console", "yaml"].contains(it)) else {
            parts.push(Part::Text(format!("{line}\n")));
            continue;
        };
        let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        parts.push(match (language, body.first().and_then(|first| first.strip_prefix("# "))) {
            ("sh", _) => Part::Script(body.join("\n")),
            ("console", _) => Part::Answers(answers(&body)?),
            (_, Some(name)) if Path::new(name).extension().is_some_and(|it| it == "yaml") && !name.contains(' ') => {
                Part::File { name: name.to_owned(), text: body.join("\n") }
            }
            _ => Part::Text(format!("```{language}\n{}\n```\n", body.join("\n"))),
        });
    }
    Ok(parts)
}

fn answers(body: &[&str]) -> Result<Vec<(String, String)>> {
    let mut answers = Vec::<(String, String)>::new();
    for line in body {
        match (line.strip_prefix("$ "), answers.last_mut()) {
            (Some(command), _) => answers.push((command.to_owned(), String::new())),
            // The command continues in this line.
            (None, Some((command, answer))) if answer.is_empty() && command.ends_with('\\') => {
                write!(command, "\n{line}")?;
            }
            (None, Some((_, answer))) => writeln!(answer, "{line}")?,
            (None, None) => bail!("an answer without a command: {line}"),
        }
    }
    Ok(answers)
}

/// Replaces text that varies between runs.
fn alike(answer: &str) -> Result<String> {
    let mut text = answer.to_owned();
    for (varies, instead) in VARIES {
        text = Regex::new(varies)?.replace_all(&text, instead).into_owned();
    }
    Ok(text.lines().map(|line| line.trim_end().to_owned() + "\n").collect())
}

/// A person at a shell in the checkout, with further terminals for programs in the foreground.
struct Reader {
    /// The working directory. It contains the files of the pages, and links to directories of the checkout.
    dir: PathBuf,
    /// What the cluster printed to be pasted into each terminal.
    exports: String,
    running: Vec<Child>,
}

impl Reader {
    fn new() -> Result<Self> {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tutorial");
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(dir.join("target"))?;
        for name in ["config", "docs"] {
            std::os::unix::fs::symlink(repository().join(name), dir.join(name))?;
        }
        Ok(Self { dir, exports: String::new(), running: Vec::new() })
    }

    /// Plays a page, and returns the page. Answers that differ from those on the page replace them.
    async fn play(&mut self, page: &str, writes: bool) -> Result<String> {
        let mut played = String::new();
        for part in parts(page)? {
            match part {
                Part::Text(text) => played += &text,
                Part::File { name, text } => {
                    fs::write(self.dir.join(&name), &text)?;
                    write!(played, "```yaml\n{text}\n```\n")?;
                }
                Part::Script(script) => {
                    self.script(&script).await?;
                    write!(played, "```sh\n{script}\n```\n")?;
                }
                Part::Answers(answers) => {
                    played += "```console\n";
                    for (command, answer) in answers {
                        let now = self.answer(&command, &answer, writes).await?;
                        write!(played, "$ {command}\n{now}")?;
                    }
                    played += "```\n";
                }
            }
        }
        Ok(played)
    }

    /// Runs the commands of a block. All of them must succeed.
    async fn script(&mut self, script: &str) -> Result<()> {
        if script == CLUSTER.0 {
            let printed = self.begin(CLUSTER.1, "cluster.log", CLUSTER.2).await?;
            self.exports = printed.lines().filter(|line| line.starts_with("export ")).collect::<Vec<_>>().join("\n");
            return Ok(());
        }
        let (before, last) = script.rsplit_once('\n').unwrap_or(("", script));
        let foreground = last.ends_with(OPERATOR.0);
        let output = self.shell(if foreground { before } else { script })?.output().await?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{script}\nends with {}: {said}", output.status);
        if foreground {
            self.begin(last, OPERATOR_LOG, OPERATOR.1).await?;
        }
        Ok(())
    }

    /// Runs a command and returns its answer, or the page's answer if they differ only in text that varies.
    async fn answer(&self, command: &str, expected: &str, writes: bool) -> Result<String> {
        let is = alike(expected)?;
        let ask = async || {
            let output = self.shell(command)?.output().await?;
            Ok(String::from_utf8(output.stdout)?)
        };
        let reads = READS.iter().any(|it| command.starts_with(it));
        let is_it = |answer: &String| alike(answer).is_ok_and(|answer| answer == is);
        let within = if writes { SETTLES_WITHIN } else { AGREES_WITHIN };
        let last = if reads { ask_until(within, command, ask, is_it).await.ok() } else { None };
        let answer = if let Some(answer) = last { answer } else { ask().await? };
        Ok(if alike(&answer)? == is { expected.to_owned() } else { answer })
    }

    /// Prepares shell commands. Their standard error goes to the standard output.
    fn shell(&self, commands: &str) -> Result<Command> {
        let example = process::workspace_binary("examples/remediation_orchestrator")
            .context("examples are built by `cargo build --workspace --examples`")?;
        let commands = commands.replace(EXAMPLE, &example.display().to_string());
        let mut command = process::command("bash")?;
        command.args(["-euo", "pipefail", "-c", &format!("exec 2>&1\n{}\n{commands}", self.exports)]);
        command.current_dir(&self.dir).env_remove("KUBECONFIG");
        // Otherwise, control planes that have used the same port would share kubectl's discovery cache. Another
        // operator on this machine may use the default ports.
        command.env("KUBECACHEDIR", self.dir.join("cache"));
        command.env("WFE_METRICS_ADDRESS", "127.0.0.1:0").env("WFE_HEALTH_ADDRESS", "127.0.0.1:0");
        Ok(Command::from(command))
    }

    /// Starts a program in the foreground of another terminal. Returns its output when the program is ready.
    async fn begin(&mut self, line: &str, log: &str, ready: &str) -> Result<String> {
        let programs = process::workspace_binary("control-plane")?;
        let programs = programs.parent().context("a binary without a directory")?;
        let line =
            line.replace("control-plane up", "exec control-plane up").replace(OPERATOR.0, "exec wfe-operator run");
        let log = self.dir.join(log);
        let mut command = self.shell(&format!("PATH={}:$PATH\n{line}", programs.display()))?;
        self.running.push(command.stdout(fs::File::create(&log)?).kill_on_drop(true).spawn()?);
        let ask = async || Ok(fs::read_to_string(&log)?);
        ask_until(READY_WITHIN, &format!("{line} prints {ready:?}"), ask, |printed| printed.contains(ready)).await
    }

    fn log(&self) -> String {
        format!("\nthe operator's last lines:\n{}", process::last_lines(&self.dir.join(OPERATOR_LOG), 15))
    }

    /// Ends the programs in the foreground with Ctrl-C, the last one first, as the page says.
    async fn leave(&mut self) -> Result<()> {
        while let Some(mut child) = self.running.pop() {
            let pid = child.id().context("it has ended by itself")?;
            self.shell(&format!("kill -INT -{pid}"))?.status().await?;
            tokio::time::timeout(READY_WITHIN, child.wait()).await.context("it goes on after Ctrl-C")??;
        }
        Ok(())
    }
}

#[test]
fn answers_are_compared_without_what_varies() -> Result<()> {
    let then = "disk-1   Completed   took 1s   node/worker-1   3m12s\nat 2026-01-02T03:04:05Z by host-1_a3f1 leads";
    let now = "disk-1 Completed took 14s node/worker-1 9s\nat 2027-01-02T03:04:05Z by another_ffff leads\n";
    assert_eq!(alike(then)?, alike(now)?);
    assert_ne!(alike("node/worker-1 runs")?, alike("node/worker-2 runs")?);
    assert_ne!(alike("exit code 1")?, alike("exit code 2")?);
    Ok(())
}

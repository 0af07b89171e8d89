//! A real Prometheus in a process for one test, and promtool. `tests/prometheus/fetch` downloads both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use crate::awaits::DEADLINE;
use crate::world::World;
use crate::{http, process, repository};

const SERVES_WITHIN: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(100);
/// The interval of scrapes and evaluations. It is short, because a test waits for them.
const EVERY: &str = "500ms";

/// Returns a command for promtool. Like any program of [`process::command`], promtool ends with the thread that starts
/// it.
pub fn promtool() -> Result<Command> {
    process::command(program("promtool")?)
}

fn program(name: &str) -> Result<PathBuf> {
    let fetch = repository().join("tests/prometheus/fetch");
    let output = Command::new(&fetch)
        .arg("--print-dir")
        .output()
        .with_context(|| format!("{} could not be run", fetch.display()))?;
    if output.status.code() == Some(3) {
        bail!("Prometheus is not fetched yet: run tests/prometheus/fetch (once, 20 MB)");
    }
    ensure!(output.status.success(), "tests/prometheus/fetch: {}", String::from_utf8_lossy(&output.stderr).trim());
    let dir = String::from_utf8(output.stdout).context("the directory of Prometheus is not UTF-8")?;
    Ok(Path::new(dir.trim_end()).join(name))
}

/// A scrape target of a Prometheus: an address, and the labels of its series.
#[derive(Debug, Clone)]
pub struct Scraped {
    /// Host and port of a `/metrics` endpoint.
    pub address: String,
    /// The label `job`.
    pub job: String,
    /// The label `namespace`.
    pub namespace: String,
    /// The credentials, if the metrics are served over TLS.
    pub secured: Option<Secured>,
}

/// The credentials of a Prometheus for metrics over TLS.
#[derive(Debug, Clone)]
pub struct Secured {
    /// The certificate of the authority.
    pub authority: PathBuf,
    /// A file with the token of the Prometheus.
    pub token: PathBuf,
}

/// A running Prometheus on a port of its own. Dropping it kills the process. The control plane deletes the data when it
/// ends.
#[derive(Debug)]
pub struct Prometheus {
    child: Child,
    log: PathBuf,
    address: String,
}

impl Prometheus {
    /// Starts a Prometheus with these rules, and waits until it is ready. It ends with the caller's thread.
    pub async fn start(world: &World, scraped: &[Scraped], rules: &str) -> Result<Self> {
        let dir = world.control_plane().dir().join("worlds").join(world.namespace());
        // A world may have several Prometheus processes.
        let names = (1..).map(|number| format!("prometheus-{number}"));
        let dir = names.map(|name| dir.join(name)).find(|dir| !dir.exists()).context("no name is left")?;
        fs::create_dir_all(&dir)?;
        let jobs = scraped.iter().map(|it| {
            let target = json!({"targets": [it.address], "labels": {"namespace": it.namespace}});
            let mut job = json!({"job_name": it.job, "static_configs": [target]});
            if let Some(Secured { authority, token }) = &it.secured {
                job["scheme"] = json!("https");
                job["tls_config"] = json!({"ca_file": authority});
                job["authorization"] = json!({"credentials_file": token});
            }
            job
        });
        // JSON is also YAML.
        let config = json!({
            "global": {"scrape_interval": EVERY, "scrape_timeout": EVERY, "evaluation_interval": EVERY},
            "rule_files": ["rules.yaml"],
            "scrape_configs": jobs.collect::<Vec<_>>(),
        });
        fs::write(dir.join("prometheus.yaml"), config.to_string())?;
        fs::write(dir.join("rules.yaml"), rules)?;
        let log = dir.join("prometheus.log");
        let file = process::open_log(&log)?;
        let mut command = process::command(program("prometheus")?)?;
        command
            .arg(format!("--config.file={}", dir.join("prometheus.yaml").display()))
            .arg(format!("--storage.tsdb.path={}", dir.join("data").display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .stdout(file.try_clone()?)
            .stderr(file);
        let child = command.spawn().context("Prometheus cannot be started")?;
        let mut prometheus = Self { child, log, address: String::new() };
        prometheus.await_ready().await?;
        Ok(prometheus)
    }

    async fn await_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + SERVES_WITHIN;
        loop {
            if let Some(address) = self.listens_on() {
                self.address = address;
                if http::get(&self.address, "/-/ready").await.is_ok_and(|answer| answer.status == 200) {
                    return Ok(());
                }
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("Prometheus ended ({status}); {}", self.last_words());
            }
            ensure!(
                Instant::now() < deadline,
                "Prometheus is not ready after {SERVES_WITHIN:?}; {}",
                self.last_words()
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Finds in the log the port that the kernel has assigned to the Prometheus.
    fn listens_on(&self) -> Option<String> {
        let text = fs::read_to_string(&self.log).ok()?;
        let line = text.lines().find(|line| line.contains("msg=\"Listening on\""))?;
        let address = line.split_once("address=")?.1.split_whitespace().next()?;
        Some(address.to_owned())
    }

    /// Evaluates an expression now, and returns its series. A scalar is an error.
    pub async fn query(&self, expression: &str) -> Result<Vec<Value>> {
        self.series("query", &[("query", expression)]).await
    }

    /// Evaluates an expression every `step` seconds, over the last `seconds` before `end` (in Unix time). Returns its
    /// series.
    pub async fn range(&self, expression: &str, end: i64, seconds: i64, step: u64) -> Result<Vec<Value>> {
        let [start, end, step] = [(end - seconds).to_string(), end.to_string(), step.to_string()];
        self.series("query_range", &[("query", expression), ("start", &start), ("end", &end), ("step", &step)]).await
    }

    async fn series(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Vec<Value>> {
        let data = self.ask(path, parameters).await?;
        data["result"].as_array().cloned().with_context(|| format!("not a list of series: {data}"))
    }

    /// Returns the firing alerts by name. If several alerts have the same name, only one is returned.
    pub async fn firing(&self) -> Result<BTreeMap<String, Value>> {
        let data = self.ask("alerts", &[]).await?;
        let alerts = data["alerts"].as_array().into_iter().flatten().filter(|alert| alert["state"] == "firing");
        let name = |alert: &Value| alert["labels"]["alertname"].as_str().unwrap_or_default().to_owned();
        Ok(alerts.map(|alert| (name(alert), alert.clone())).collect())
    }

    /// Waits until `are` accepts the firing alerts, and returns the alerts. `what` completes the error "awaited ...".
    pub async fn await_firing(
        &self,
        what: &str,
        are: impl Fn(&BTreeMap<String, Value>) -> bool,
    ) -> Result<BTreeMap<String, Value>> {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let firing = self.firing().await?;
            if are(&firing) {
                return Ok(firing);
            }
            ensure!(
                Instant::now() < deadline,
                "awaited {what} for {DEADLINE:?}, in vain: {firing:?} fire; {}",
                self.last_words()
            );
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value> {
        let pairs = parameters.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let path = format!("/api/v1/{path}?{}", pairs.collect::<Vec<_>>().join("&"));
        let answer = http::get(&self.address, &path).await?;
        ensure!(answer.status == 200, "Prometheus answers {parameters:?} with {}", answer.text());
        let mut body: Value = serde_json::from_slice(&answer.body)?;
        Ok(body["data"].take())
    }

    fn last_words(&self) -> String {
        format!("log {}, its last lines:\n{}", self.log.display(), process::last_lines(&self.log, 20))
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // The process may be ending on its own at this moment.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Escapes a value for a URL.
fn encode(value: &str) -> String {
    let mut encoded = String::new();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() {
            encoded.push(char::from(byte));
        } else {
            // Writing to a String never fails.
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

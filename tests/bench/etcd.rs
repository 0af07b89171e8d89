//! The etcd of the API server, for objects whose creation through the API server would take too long.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use kube::{Client, Config};
use serde_json::{Value, json};

use crate::api;

/// The number of writes that etcd accepts in one transaction by default.
pub(crate) const AT_ONCE: usize = 128;

/// A client of etcd's JSON gateway.
pub(crate) struct Etcd(Client);

impl Etcd {
    pub(crate) fn new(url: &str) -> Result<Self> {
        Ok(Self(Client::try_from(Config::new(url.parse()?))?))
    }

    /// Reads one value.
    pub(crate) async fn get(&self, key: &str) -> Result<String> {
        let found = self.ask("/v3/kv/range", &json!({"key": BASE64_STANDARD.encode(key)})).await?;
        let value = found["kvs"][0]["value"].as_str().with_context(|| format!("etcd has no {key}"))?;
        Ok(String::from_utf8(BASE64_STANDARD.decode(value)?)?)
    }

    /// Writes new keys with their values, at most `AT_ONCE`, in one transaction.
    pub(crate) async fn create(&self, values: impl IntoIterator<Item = (String, String)>) -> Result<()> {
        let (mut absent, mut puts) = (Vec::new(), Vec::new());
        for (key, value) in values {
            let key = BASE64_STANDARD.encode(key);
            absent.push(json!({"key": key, "target": "VERSION", "result": "EQUAL", "version": "0"}));
            puts.push(json!({"requestPut": {"key": key, "value": BASE64_STANDARD.encode(value)}}));
        }
        let done = self.ask("/v3/kv/txn", &json!({"compare": absent, "success": puts})).await?;
        ensure!(done["succeeded"] == true, "some of these are there already: {done}");
        Ok(())
    }

    async fn ask(&self, path: &str, question: &Value) -> Result<Value> {
        let answer = api::send(&self.0, "POST", path, "application/json", question.to_string()).await?;
        ensure!(answer.code == 200, "etcd answered {}: {}", answer.code, String::from_utf8_lossy(&answer.body));
        Ok(serde_json::from_slice(&answer.body)?)
    }
}

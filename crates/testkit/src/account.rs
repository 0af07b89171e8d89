//! A service account of a test's own, with the rights that a file of the repository gives it.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::world::World;
use crate::{manifests, operator};

const IN_FORCE_WITHIN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(10);

impl World {
    /// Applies a file with one service account, its roles and their bindings in this world's namespace, waits until the
    /// account may do all that the roles say, and returns a kubeconfig with its token.
    pub async fn grant(&self, file: &Path) -> Result<PathBuf> {
        let mut account = String::new();
        let mut rules = Vec::new();
        for mut object in manifests::read(file)? {
            object["metadata"]["namespace"] = json!(self.namespace());
            for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
                subject["namespace"] = json!(self.namespace());
            }
            if object["kind"] == "ServiceAccount" {
                account = object["metadata"]["name"].as_str().context("an account without a name")?.to_owned();
            }
            rules.extend(object["rules"].as_array().into_iter().flatten().cloned());
            manifests::apply(&self.client(), &object).await?;
        }
        for rule in rules {
            self.await_in_force(&account, &rule).await?;
        }
        let dir = self.control_plane().dir().join("worlds").join(self.namespace());
        std::fs::create_dir_all(&dir)?;
        let path = dir.join(format!("kubeconfig-{account}"));
        operator::write_kubeconfig(self, (self.namespace(), &account), None, &path).await?;
        Ok(path)
    }

    async fn await_in_force(&self, account: &str, rule: &Value) -> Result<()> {
        let words = |key: &str| rule[key].as_array().cloned().unwrap_or_default();
        let mut rights = Vec::new();
        for group in words("apiGroups") {
            for resource in words("resources") {
                rights.extend(words("verbs").into_iter().map(|verb| (group.clone(), resource.clone(), verb)));
            }
        }
        let deadline = Instant::now() + IN_FORCE_WITHIN;
        for (group, resource, verb) in rights {
            let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
                "user": format!("system:serviceaccount:{}:{account}", self.namespace()),
                "resourceAttributes": {"namespace": self.namespace(), "group": group, "resource": resource, "verb": verb},
            }}))?;
            let reviews: Api<SubjectAccessReview> = Api::all(self.client());
            while !reviews.create(&PostParams::default(), &review).await?.status.is_some_and(|status| status.allowed) {
                ensure!(Instant::now() < deadline, "{account} may not {verb} {resource}");
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }
}

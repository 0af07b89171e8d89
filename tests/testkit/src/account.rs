//! Service accounts of a test: programs with the permissions that a file of the repository grants, and people with the
//! roles of `config/rbac/people`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::assets::repository;
use crate::rights::{Right, name_of, rights_of, without};
use crate::world::World;
use crate::{manifests, operator, rbac};

impl World {
    /// Applies a file with one service account, its roles and their bindings in the namespace of this world. Waits
    /// until the roles are in force, and returns a kubeconfig with a token of the account.
    pub async fn grant(&self, file: &Path) -> Result<PathBuf> {
        let mut account = String::new();
        let mut rights = Vec::new();
        for mut object in manifests::read(file)? {
            object["metadata"]["namespace"] = json!(self.namespace());
            for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
                subject["namespace"] = json!(self.namespace());
            }
            if object["kind"] == "ServiceAccount" {
                account = object["metadata"]["name"].as_str().context("an account without a name")?.to_owned();
            }
            rights.extend(rights_of(&object));
            manifests::apply(&self.client(), &object).await?;
        }
        for right in rights {
            self.await_right(&account, (Some(self.namespace()), None), &right).await?;
        }
        self.log_in(&account).await
    }

    /// Creates a person with exactly the named roles of `config/rbac/people`, without the right `but` if one is given.
    /// Waits until the rights are in force, and returns a kubeconfig with a token. The person's user name is
    /// [`World::user`].
    ///
    /// Cluster roles are bound for the whole cluster, because a clearance also requires the right in the target's
    /// namespace.
    pub async fn person(&self, name: &str, roles: &[&str], but: Option<&Right>) -> Result<PathBuf> {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": self.namespace()},
        });
        manifests::apply(&self.client(), &account).await?;
        for shipped in people()?.into_iter().filter(|role| roles.iter().any(|name| role["metadata"]["name"] == *name)) {
            let role = but.map_or(shipped.clone(), |right| without(shipped, right));
            self.bind(name, role).await?;
        }
        self.log_in(name).await
    }

    /// Returns the user name of an account of this world, as the API server writes it.
    #[must_use]
    pub fn user(&self, account: &str) -> String {
        format!("system:serviceaccount:{}:{account}", self.namespace())
    }

    async fn bind(&self, person: &str, mut role: Value) -> Result<()> {
        let kind = role["kind"].as_str().unwrap_or_default().to_owned();
        let shipped = role["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let name = format!("{shipped}-{}-{person}", self.namespace());
        let place = if role["metadata"]["namespace"] == rbac::SYSTEM {
            self.system_namespace()
        } else {
            self.execution_namespace()
        };
        let (namespace, binding) = match (kind.as_str(), shipped.as_str()) {
            ("Role", _) => (Some(place.as_str()), "RoleBinding"),
            _ => (None, "ClusterRoleBinding"),
        };
        role["metadata"] = json!({"name": name, "namespace": (kind == "Role").then_some(&place)});
        self.apply(&role).await?;
        let group = "rbac.authorization.k8s.io";
        self.apply(&json!({
            "apiVersion": format!("{group}/v1"), "kind": binding, "metadata": {"name": name, "namespace": namespace},
            "roleRef": {"apiGroup": group, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": person, "namespace": self.namespace()}],
        }))
        .await?;
        for right in rights_of(&role) {
            self.await_right(person, (namespace, name_of(&role, &right).as_deref()), &right).await?;
        }
        Ok(())
    }

    async fn await_right(&self, account: &str, of: (Option<&str>, Option<&str>), right: &Right) -> Result<()> {
        rbac::await_review(&self.client(), &self.user(account), of, right, true).await
    }

    /// Returns another kubeconfig of a person, with this URL of the API server (such as a proxy's).
    pub async fn person_at(&self, name: &str, url: &str) -> Result<PathBuf> {
        self.log_in_at(name, Some(url)).await
    }

    async fn log_in(&self, account: &str) -> Result<PathBuf> {
        self.log_in_at(account, None).await
    }

    async fn log_in_at(&self, account: &str, url: Option<&str>) -> Result<PathBuf> {
        let dir = self.control_plane().dir().join("worlds").join(self.namespace());
        std::fs::create_dir_all(&dir)?;
        let way = if url.is_some() { "-through" } else { "" };
        let path = dir.join(format!("kubeconfig-{account}{way}"));
        operator::write_kubeconfig(self, (self.namespace(), account), url, &path).await?;
        Ok(path)
    }
}

/// Returns the rights in a role of `config/rbac/people`.
pub fn rights_of_people(role: &str) -> Result<Vec<Right>> {
    let roles = people()?.into_iter().filter(|one| one["metadata"]["name"] == role);
    let rights: Vec<Right> = roles.flat_map(|role| rights_of(&role)).collect();
    ensure!(!rights.is_empty(), "config/rbac/people has no role {role}");
    Ok(rights)
}

fn people() -> Result<Vec<Value>> {
    manifests::read(&repository().join("config/rbac/people"))
}

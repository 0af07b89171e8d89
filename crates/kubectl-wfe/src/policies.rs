//! Checks whether the shipped admission policies are in the cluster, unchanged.

use anyhow::Result;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use serde_json::Value;
use tokio::task::JoinSet;
use wfe_settings::policies::{Half, Shipped, shipped};

/// The result of reading one object of a policy.
enum Found {
    AsItShips,
    Wrong(String),
    Denied,
    /// The API server did not answer.
    Unread,
}

/// The result of reading all policies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    /// How many policies the operator ships.
    pub(crate) count: usize,
    /// What is missing or changed, sorted.
    pub(crate) wrong: Vec<String>,
    /// Why the state of some policies is unknown, if it is.
    pub(crate) unknown: Option<&'static str>,
}

/// Reads the policies. The answers of commands do not depend on them, so a failed read is no error.
pub(crate) async fn seen(client: &Client) -> Result<Policies> {
    let shipped = shipped()?;
    let count = shipped.len();
    let mut reads = JoinSet::new();
    for (shipped, half) in shipped.into_iter().flat_map(|it| Half::ALL.map(|half| (it.clone(), half))) {
        let client = client.clone();
        reads.spawn(async move { read(&client, &shipped, half).await });
    }
    let mut found: Vec<Found> = Vec::new();
    while let Some(read) = reads.join_next().await {
        found.push(read.unwrap_or(Found::Unread));
    }
    Ok(sum_up(count, found))
}

async fn read(client: &Client, shipped: &Shipped, half: Half) -> Found {
    let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", half.kind());
    let resource = ApiResource::from_gvk_with_plural(&kind, half.plural());
    let api = Api::<DynamicObject>::all_with(client.clone(), &resource);
    let (name, kind) = (&shipped.name, half.kind());
    match api.get_opt(name).await {
        Ok(Some(object)) => {
            let spec = object.data.get("spec").unwrap_or(&Value::Null);
            match shipped.difference(half, spec) {
                None => Found::AsItShips,
                Some(place) => Found::Wrong(format!("{name}: the {kind} is not as it ships, at {place}")),
            }
        }
        Ok(None) => Found::Wrong(format!("{name}: there is no {kind}")),
        Err(kube::Error::Api(status)) if status.code == 403 => Found::Denied,
        Err(_) => Found::Unread,
    }
}

fn sum_up(count: usize, found: Vec<Found>) -> Policies {
    let (mut wrong, mut denied, mut unread) = (Vec::new(), false, false);
    for one in found {
        match one {
            Found::AsItShips => {}
            Found::Wrong(why) => wrong.push(why),
            Found::Denied => denied = true,
            Found::Unread => unread = true,
        }
    }
    wrong.sort();
    let unknown = match (denied, unread) {
        (true, _) => Some("as you may not get all of them (the ClusterRole wfe-explain gives the right)"),
        (false, true) => Some("as the API server did not answer for all of them"),
        (false, false) => None,
    };
    Policies { count, wrong, unknown }
}

impl Policies {
    /// Describes the policies in one line. `kubectl wfe doctor` lists all that is wrong.
    pub(crate) fn told(&self) -> String {
        let Self { count, wrong, unknown } = self;
        let Some((first, others)) = wrong.split_first() else {
            return match unknown {
                None => format!("all {count} are as they ship"),
                Some(why) => format!("whether they protect is not known, {why}"),
            };
        };
        let more = match others.len() {
            0 => String::new(),
            more => format!("; and {more} more: kubectl wfe doctor"),
        };
        let unknown = unknown.map(|why| format!("; of others it is not known, {why}")).unwrap_or_default();
        format!("not all protect: {first}{more}{unknown}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_never_said_to_protect() {
        let gone = |name: &str| Found::Wrong(format!("{name}: there is no policy"));
        for (found, said) in [
            (vec![Found::AsItShips], "all 9 are as they ship"),
            (vec![gone("b"), gone("a")], "not all protect: a: there is no policy; and 1 more: kubectl wfe doctor"),
            (vec![Found::AsItShips, Found::Denied], "whether they protect is not known, as you may not get all"),
            (vec![Found::AsItShips, Found::Unread], "whether they protect is not known, as the API server did not"),
            (
                vec![gone("a"), Found::Denied],
                "not all protect: a: there is no policy; of others it is not known, as you",
            ),
        ] {
            let told = sum_up(9, found).told();
            assert!(told.starts_with(said), "{told}");
        }
    }
}

//! Controls access to the metrics. A client must send a token that the API server accepts, and its user must have
//! permission to get `/metrics`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::api::PostParams;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wfe_view::call::CallError;

use crate::cluster::client::Cluster;
use crate::verb::Verb;

/// How long an answer of the API server is reused. A revoked token or permission stays valid for up to this time.
const BELIEVED_FOR: Duration = Duration::from_mins(1);
/// The limit of remembered tokens. One or two Prometheus servers use one token each.
const KNOWN: usize = 32;
/// The limit of a token's length, in bytes: no token of a cluster is longer.
const LONGEST_TOKEN: usize = 16 << 10;
/// How many tokens are checked at the same time. Clients with invented tokens must not flood the API server.
const ASKED_AT_ONCE: usize = 2;
/// The time-out of a check: less than the time-out of a connection.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The API server's answer about a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    May,
    MayNot,
    Unknown,
}

/// Checks tokens, and remembers the answers. Cheap to clone.
#[derive(Clone)]
pub struct Access(Arc<Inner>);

struct Inner {
    cluster: Cluster,
    known: Mutex<HashMap<Box<str>, (Instant, Verdict)>>,
    asking: Semaphore,
}

impl Access {
    /// Makes a checker without remembered answers.
    #[must_use]
    pub fn new(cluster: Cluster) -> Self {
        let (known, asking) = (Mutex::default(), Semaphore::new(ASKED_AT_ONCE));
        Self(Arc::new(Inner { cluster, known, asking }))
    }

    /// Returns the response to a request that is refused; `None` if the request is admitted.
    pub(super) async fn refuses(&self, headers: &HeaderMap) -> Option<Response> {
        let Some(token) = token(headers) else {
            return Some(unauthorized("send a token of the cluster: Authorization: Bearer TOKEN"));
        };
        match self.judge(token).await {
            Ok(Verdict::May) => None,
            Ok(Verdict::MayNot) => {
                let why = "you may not get the path /metrics; ask for the right to, as the ClusterRole of the chart for \
                           readers of the metrics gives it\n";
                Some((StatusCode::FORBIDDEN, why).into_response())
            }
            Ok(Verdict::Unknown) => Some(unauthorized("the cluster does not know this token")),
            Err(error) => {
                tracing::warn!(%error, "cannot ask who may read the metrics");
                let why = "the API server cannot be asked who you are; the log of the operator says why\n";
                Some((StatusCode::SERVICE_UNAVAILABLE, why).into_response())
            }
        }
    }

    async fn judge(&self, token: &str) -> Result<Verdict, CallError> {
        if let Some(verdict) = self.known(token) {
            return Ok(verdict);
        }
        let Ok(_permit) = self.0.asking.acquire().await else { return Ok(Verdict::Unknown) };
        // Another request may have checked this token meanwhile.
        if let Some(verdict) = self.known(token) {
            return Ok(verdict);
        }
        let verdict = match self.who_has(token).await? {
            None => Verdict::Unknown,
            Some(user) => self.may_read(user).await?,
        };
        let mut known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        remember(&mut known, token, verdict);
        Ok(verdict)
    }

    fn known(&self, token: &str) -> Option<Verdict> {
        let known = self.0.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(token).filter(|(since, _)| since.elapsed() < BELIEVED_FOR).map(|(_, verdict)| *verdict)
    }

    async fn who_has(&self, token: &str) -> Result<Option<UserInfo>, CallError> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let (api, params) = (self.0.cluster.reviews::<TokenReview>(), PostParams::default());
        let request = api.create(&params, &review);
        let answer = self.0.cluster.ask(Verb::Create, "tokenreviews", ANSWERS_WITHIN, request).await?;
        let status = answer.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)))
    }

    async fn may_read(&self, user: UserInfo) -> Result<Verdict, CallError> {
        let path = NonResourceAttributes { path: Some("/metrics".to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            non_resource_attributes: Some(path),
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let (api, params) = (self.0.cluster.reviews::<SubjectAccessReview>(), PostParams::default());
        let request = api.create(&params, &review);
        let answer = self.0.cluster.ask(Verb::Create, "subjectaccessreviews", ANSWERS_WITHIN, request).await?;
        let may = answer.status.is_some_and(|status| status.allowed && status.denied != Some(true));
        Ok(if may { Verdict::May } else { Verdict::MayNot })
    }
}

/// Remembers a verdict. Beyond the limit, older verdicts are dropped.
fn remember(known: &mut HashMap<Box<str>, (Instant, Verdict)>, token: &str, verdict: Verdict) {
    known.retain(|_, (since, _)| since.elapsed() < BELIEVED_FOR);
    // Tokens without permission are dropped first, so that a flood of them does not cause a new check of a valid token.
    while known.len() >= KNOWN {
        let oldest = known.iter().min_by_key(|(_, (since, verdict))| (*verdict == Verdict::May, *since));
        let Some(oldest) = oldest.map(|(token, _)| token.clone()) else { break };
        known.remove(&oldest);
    }
    known.insert(token.into(), (Instant::now(), verdict));
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= LONGEST_TOKEN).then_some(token)
}

fn unauthorized(why: &str) -> Response {
    (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], format!("{why}\n")).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_follows_bearer() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            token(&headers).map(str::to_owned)
        };
        assert_eq!(read("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(read("bearer  abc ").as_deref(), Some("abc"));
        for none in ["Basic abc", "Bearer", "Bearer ", "abc", ""] {
            assert_eq!(read(none), None, "{none:?}");
        }
        assert_eq!(read(&format!("Bearer {}", "x".repeat(LONGEST_TOKEN + 1))), None);
        assert_eq!(token(&HeaderMap::new()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn invented_tokens_drive_no_reader_out() {
        let mut known = HashMap::new();
        remember(&mut known, "prometheus", Verdict::May);
        for number in 0..10 * KNOWN {
            remember(&mut known, &number.to_string(), Verdict::Unknown);
        }
        assert!(known.len() == KNOWN && known.contains_key("prometheus"), "{}", known.len());
        tokio::time::advance(BELIEVED_FOR).await;
        remember(&mut known, "another", Verdict::MayNot);
        assert_eq!(known.len(), 1, "what is not believed any more is forgotten");
    }
}

//! What the API server answers to an object that would be created: its admission policies, quotas and the rights of the
//! caller. Nothing is stored.

use anyhow::{Result, bail};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use serde_json::{Value, json};
use wfe_api::{GROUP, VERSION};
use wfe_view::call::within;

use super::finding::Findings;
use crate::connection::{ANSWERS_WITHIN, Connection, FIELD_MANAGER};

/// Asks for a creation that is not carried out. `plural` is the resource of the object.
pub(super) async fn ask(connection: &Connection, plural: &str, object: &Value, found: &mut Findings) -> Result<()> {
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&connection.namespace);
    if !wfe_api::is_dns_label(namespace) {
        bail!("{namespace:?} is not the name of a namespace; choose another one with -n");
    }
    let uri = format!(
        "/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}?dryRun=All&fieldValidation=Strict&fieldManager={FIELD_MANAGER}"
    );
    let mut object = object.clone();
    object["metadata"]["namespace"] = json!(namespace);
    let request = Request::builder().method(Method::POST).uri(uri).header("content-type", "application/json");
    let request = request.body(Body::from(serde_json::to_vec(&object)?))?;
    let asked = async {
        let answer = connection.client.send(request).await?;
        let (status, warnings) = (answer.status(), warnings(answer.headers()));
        Ok((status, warnings, answer.into_body().collect_bytes().await?))
    };
    let (status, warnings, body) = match within(ANSWERS_WITHIN, asked).await {
        Ok(answer) => answer,
        Err(error) => bail!("{error}"),
    };
    let body = serde_json::from_slice::<Value>(&body).unwrap_or_default();
    judge(status, &body, found)?;
    for warning in warnings {
        found.warning("", format!("the API server warns: {warning}"));
    }
    Ok(())
}

/// Adds what the API server refuses.
fn judge(status: StatusCode, body: &Value, found: &mut Findings) -> Result<()> {
    let message = body["message"].as_str().unwrap_or("it gives no reason");
    match (status.as_u16(), body["reason"].as_str()) {
        (200..=299, _) => {}
        // The API server checks this last, after the policies.
        (409, Some("AlreadyExists")) => found.warning("metadata.name", format!("the API server answers: {message}")),
        (404, _) if body["details"]["name"].is_null() => {
            bail!("the CRD is not installed: is this the right cluster? kubectl config current-context")
        }
        (401, _) => bail!("{message}; log in again"),
        (500.., _) => bail!("{message}"),
        _ => found.error("", format!("the API server answers: {message}")),
    }
    Ok(())
}

/// Reads the texts of the headers `Warning`, such as `299 - "unknown field"`.
fn warnings(headers: &http::HeaderMap) -> Vec<String> {
    let texts = headers.get_all("warning").iter().filter_map(|value| value.to_str().ok());
    let quoted = texts.filter_map(|text| Some(text.split_once('"')?.1.strip_suffix('"')?.replace("\\\"", "\"")));
    quoted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_in_the_words_of_the_api_server() {
        let answer = |code: u16, body: &Value| {
            let mut found = Findings::default();
            let judged = judge(StatusCode::from_u16(code).unwrap(), body, &mut found);
            (judged.map_err(|error| error.to_string()), found.0.into_iter().map(|it| it.says).collect::<Vec<_>>())
        };
        let refusal = json!({"reason": "Forbidden", "message": "denied by policy"});
        assert_eq!(answer(201, &json!({})), (Ok(()), vec![]));
        assert_eq!(answer(403, &refusal), (Ok(()), vec!["the API server answers: denied by policy".to_owned()]));
        let exists = json!({"reason": "AlreadyExists", "message": "a already exists", "details": {"name": "a"}});
        assert_eq!(answer(409, &exists), (Ok(()), vec!["the API server answers: a already exists".to_owned()]));
        let namespace =
            json!({"reason": "NotFound", "message": "namespaces \"x\" not found", "details": {"name": "x"}});
        assert_eq!(answer(404, &namespace).1, ["the API server answers: namespaces \"x\" not found"]);
        assert!(answer(404, &json!({"details": {}})).0.is_err_and(|why| why.starts_with("the CRD is not installed")));
        assert!(answer(503, &Value::Null).0.is_err());
    }

    #[test]
    fn warnings_are_read_from_their_headers() {
        let mut headers = http::HeaderMap::new();
        headers.append("warning", "299 - \"a \\\"quoted\\\" word\"".parse().unwrap());
        headers.append("warning", "malformed".parse().unwrap());
        assert_eq!(warnings(&headers), ["a \"quoted\" word"]);
    }
}

//! Decides which requests get the page. Pure, except for the secret.

use std::fmt::Write as _;

use anyhow::{Result, anyhow};
use http::{HeaderMap, Method, StatusCode, Uri, header};
use sha2::{Digest as _, Sha256};

use crate::page::Window;

/// The length of the secret in bytes: 128 bits cannot be guessed.
const SECRET: usize = 16;

/// The address of the page.
pub(super) struct Door {
    port: u16,
    secret: String,
}

/// Why a request is refused.
pub(super) type Refusal = (StatusCode, &'static str);

impl Door {
    /// Makes an address with a new secret.
    pub(super) fn new(port: u16) -> Result<Self> {
        let mut bytes = [0; SECRET];
        getrandom::fill(&mut bytes).map_err(|error| anyhow!("this machine gives no random bytes: {error}"))?;
        let mut secret = String::new();
        for byte in bytes {
            let _ = write!(secret, "{byte:02x}"); // a write to a String never fails
        }
        Ok(Self { port, secret })
    }

    /// Returns the address for the browser.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/{}/", self.port, self.secret)
    }

    /// Judges a request. Returns the window that it asks for.
    ///
    /// The Host is checked first: a page of another server can make its own name resolve to 127.0.0.1, and would then
    /// be of the same origin as this server.
    pub(super) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<Option<Window>, Refusal> {
        let ours = [format!("127.0.0.1:{}", self.port), format!("localhost:{}", self.port)];
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok()).filter(|_| hosts.next().is_none());
        if !host.is_some_and(|host| ours.iter().any(|it| it == host)) {
            return Err((StatusCode::FORBIDDEN, "this server answers as 127.0.0.1 alone"));
        }
        if method != Method::GET {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "this page can only be read"));
        }
        // Digests are compared, so the time of the comparison says nothing about the secret.
        if Sha256::digest(uri.path()) != Sha256::digest(format!("/{}/", self.secret)) {
            return Err((StatusCode::NOT_FOUND, "use the address that kubectl wfe dashboard has printed"));
        }
        Ok(uri.query().and_then(|query| query.strip_prefix("window=")).and_then(Window::named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(method: &str, uri: &str, hosts: &[&str]) -> Result<Option<Window>, u16> {
        let door = Door { port: 4711, secret: "5ec4e7".to_owned() };
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        let judged = door.judge(&method.parse().unwrap(), &uri.parse().unwrap(), &headers);
        judged.map_err(|(status, _)| status.as_u16())
    }

    #[test]
    fn the_page_is_for_whoever_has_its_address() {
        const OURS: &str = "127.0.0.1:4711";
        for (method, uri, hosts, expected) in [
            ("GET", "/5ec4e7/", &[OURS][..], Ok(None)),
            ("GET", "/5ec4e7/", &["localhost:4711"], Ok(None)),
            ("GET", "/5ec4e7/?window=6h", &[OURS], Ok(Some(Window::SixHours))),
            ("GET", "/5ec4e7/?window=7h", &[OURS], Ok(None)),
            ("GET", "/5ec4e7/", &["evil.example:4711"], Err(403)),
            ("GET", "/5ec4e7/", &["127.0.0.1"], Err(403)),
            ("GET", "/5ec4e7/", &["127.0.0.1:4712"], Err(403)),
            ("GET", "/5ec4e7/", &[], Err(403)),
            ("GET", "/5ec4e7/", &[OURS, "evil.example"], Err(403)),
            ("POST", "/5ec4e7/", &["evil.example"], Err(403)),
            ("POST", "/5ec4e7/", &[OURS], Err(405)),
            ("HEAD", "/5ec4e7/", &[OURS], Err(405)),
            ("GET", "/5ec4e8/", &[OURS], Err(404)),
            ("GET", "/5ec4e7", &[OURS], Err(404)),
            ("GET", "/5ec4e7/x", &[OURS], Err(404)),
            ("GET", "/", &[OURS], Err(404)),
            ("GET", "/favicon.ico", &[OURS], Err(404)),
        ] {
            assert_eq!(judged(method, uri, hosts), expected, "{method} {uri} {hosts:?}");
        }
    }

    #[test]
    fn each_secret_is_new_and_has_128_bits() {
        let [one, two] = [Door::new(1).unwrap(), Door::new(1).unwrap()];
        assert!(one.secret.len() == 32 && one.secret != two.secret);
        assert_eq!(one.address(), format!("http://127.0.0.1:1/{}/", one.secret));
    }
}

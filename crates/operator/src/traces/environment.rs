//! The standard variables of OpenTelemetry that turn traces on and off. The SDK itself reads the variables about the
//! resource, the queue and the headers.

use std::path::PathBuf;
use std::time::Duration;

/// The SDK's default time-out, in milliseconds.
const TIMEOUT: u64 = 10_000;

/// The variables of a process, as a function from name to value.
pub(super) struct Environment<F>(pub(super) F);

/// Where traces go, if they are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    /// The address of the collector.
    pub(super) endpoint: String,
    /// How long a request may take.
    pub(super) timeout: Duration,
    /// The file with the certificate authorities that the collector's certificate is checked against; `None` for those
    /// of the system.
    pub(super) certificate: Option<PathBuf>,
}

impl<F: Fn(&str) -> Option<String>> Environment<F> {
    /// Returns a variable. An empty variable counts as unset, as the specification of OpenTelemetry requires.
    fn get(&self, name: &str) -> Option<String> {
        (self.0)(name).filter(|value| !value.trim().is_empty())
    }

    /// Returns a variable of the exporter: the one for traces, or else the one for all signals.
    fn of_exporter(&self, name: &str) -> Option<String> {
        let of_traces = self.get(&format!("OTEL_EXPORTER_OTLP_TRACES_{name}"));
        of_traces.or_else(|| self.get(&format!("OTEL_EXPORTER_OTLP_{name}")))
    }

    /// Returns where traces go; `None` if no variable asks for traces.
    ///
    /// # Errors
    /// Why the requested traces cannot be sent.
    pub(super) fn wanted(&self) -> Result<Option<Wanted>, String> {
        let is_disabled = self.get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let endpoint = self.of_exporter("ENDPOINT").filter(|_| !is_disabled);
        let (endpoint, exporter) = match (endpoint, self.get("OTEL_TRACES_EXPORTER")) {
            (None, _) => return Ok(None),
            (Some(_), Some(exporter)) if exporter == "none" => return Ok(None),
            (Some(endpoint), exporter) => (endpoint, exporter),
        };
        if let Some(other) = exporter.filter(|exporter| exporter != "otlp") {
            return Err(format!("OTEL_TRACES_EXPORTER is {other}, and only otlp can be used"));
        }
        if let Some(other) = self.of_exporter("PROTOCOL").filter(|protocol| protocol != "http/protobuf") {
            return Err(format!("OTEL_EXPORTER_OTLP_PROTOCOL is {other}, and only http/protobuf can be used"));
        }
        let timeout = self.of_exporter("TIMEOUT").and_then(|value| value.parse().ok()).unwrap_or(TIMEOUT);
        let certificate = self.of_exporter("CERTIFICATE").map(PathBuf::from);
        Ok(Some(Wanted { endpoint, timeout: Duration::from_millis(timeout), certificate }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(variables: &[(&str, &str)]) -> Result<Option<Wanted>, String> {
        let find =
            |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        Environment(find).wanted()
    }

    #[test]
    fn an_endpoint_turns_traces_on() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4318");
        const TRACES: (&str, &str) = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://traces:4318/v1/traces");
        let to = |endpoint: &str| {
            Some(Wanted { endpoint: endpoint.to_owned(), timeout: Duration::from_secs(10), certificate: None })
        };
        for (variables, expected) in [
            (vec![], None),
            (vec![("OTEL_TRACES_EXPORTER", "otlp"), ("OTEL_SERVICE_NAME", "wfe")], None),
            (vec![("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None),
            (vec![ALL], to("http://all:4318")),
            (vec![ALL, TRACES], to("http://traces:4318/v1/traces")),
            (vec![ALL, ("OTEL_SDK_DISABLED", "True")], None),
            (vec![ALL, ("OTEL_SDK_DISABLED", "yes")], to("http://all:4318")),
            (vec![ALL, ("OTEL_TRACES_EXPORTER", "none")], None),
            (vec![ALL, ("OTEL_TRACES_EXPORTER", "otlp")], to("http://all:4318")),
            (vec![ALL, ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")], to("http://all:4318")),
        ] {
            assert_eq!(wanted(&variables), Ok(expected), "{variables:?}");
        }
        let all = [ALL, ("OTEL_EXPORTER_OTLP_TIMEOUT", "250"), ("OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem")];
        let (timeout, certificate) = (Duration::from_millis(250), Some(PathBuf::from("/ca.pem")));
        let expected = Wanted { endpoint: "http://all:4318".to_owned(), timeout, certificate };
        assert_eq!(wanted(&all), Ok(Some(expected)));
    }

    #[test]
    fn what_cannot_be_sent_is_named() {
        const ALL: (&str, &str) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://all:4317");
        for (variable, value, name) in [
            ("OTEL_TRACES_EXPORTER", "console", "OTEL_TRACES_EXPORTER is console"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL is grpc"),
            ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_PROTOCOL is http/json"),
        ] {
            let why = wanted(&[ALL, (variable, value)]).unwrap_err();
            assert!(why.starts_with(name), "{why}");
        }
    }
}

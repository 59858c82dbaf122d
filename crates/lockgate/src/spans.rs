//! Export of spans: options named as in the OpenTelemetry specification, and the task that sends them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use clap::builder::FalseyValueParser;
use lockgate_otlp::{Exporter, Protocol, Sampler, Settings};
use lockgate_tls::{FileNames, TlsPaths};

use crate::error::CliError;

const TRACES: &str = "Traces";
/// The names of the options, for errors.
const NAMES: FileNames = FileNames { ca: "--otlp-ca", cert: "--otlp-client-cert", key: "--otlp-client-key" };

#[derive(Args, Debug)]
pub(crate) struct SpanArgs {
    /// OpenTelemetry collector that gets a span of everything done for a job. None: no spans are made
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true, value_name = "URL", help_heading = TRACES)]
    otlp_endpoint: Option<String>,

    /// The same as the whole address for spans, path and all; counts before --otlp-endpoint
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", hide_env_values = true, value_name = "URL", help_heading = TRACES)]
    otlp_traces_endpoint: Option<String>,

    /// How it is spoken to: http/protobuf or grpc
    #[arg(long, env = "OTEL_EXPORTER_OTLP_PROTOCOL", hide_env_values = true, default_value = "http/protobuf",
        value_name = "NAME", help_heading = TRACES)]
    otlp_protocol: Protocol,

    /// Headers for it, such as name=value,other=value. Better given by the variable: others see what is typed
    #[arg(long, env = "OTEL_EXPORTER_OTLP_HEADERS", hide_env_values = true, value_name = "LIST", help_heading = TRACES)]
    otlp_headers: Option<Hidden>,

    /// How long it may take to answer
    #[arg(long, env = "OTEL_EXPORTER_OTLP_TIMEOUT", hide_env_values = true, default_value_t = 10_000,
        value_parser = clap::value_parser!(u64).range(1..=600_000), value_name = "MILLISECONDS", help_heading = TRACES)]
    otlp_timeout: u64,

    /// Authorities to believe beside the public ones
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CERTIFICATE", hide_env_values = true, value_name = "FILE", help_heading = TRACES)]
    otlp_ca: Option<PathBuf>,

    /// Certificate to show; needs --otlp-client-key
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", hide_env_values = true, value_name = "FILE",
        help_heading = TRACES)]
    otlp_client_cert: Option<PathBuf>,

    /// Key of the certificate
    #[arg(long, env = "OTEL_EXPORTER_OTLP_CLIENT_KEY", hide_env_values = true, value_name = "FILE", help_heading = TRACES)]
    otlp_client_key: Option<PathBuf>,

    /// Which traces are written: always_on, always_off or traceidratio, or one of them after parentbased_, which does as the
    /// caller decided where there is one
    #[arg(long, env = "OTEL_TRACES_SAMPLER", hide_env_values = true, default_value = "parentbased_always_on",
        value_name = "NAME", help_heading = TRACES)]
    traces_sampler: String,

    /// For traceidratio: the part of traces to write, from 0 to 1
    #[arg(long, env = "OTEL_TRACES_SAMPLER_ARG", hide_env_values = true, value_name = "RATIO", help_heading = TRACES)]
    traces_sampler_arg: Option<f64>,

    /// Name of this service in traces
    #[arg(long, env = "OTEL_SERVICE_NAME", hide_env_values = true, value_name = "NAME", help_heading = TRACES)]
    service_name: Option<String>,

    /// What else to say about this process, such as name=value,other=value
    #[arg(long, env = "OTEL_RESOURCE_ATTRIBUTES", hide_env_values = true, value_name = "LIST", help_heading = TRACES)]
    resource_attributes: Option<String>,

    /// Spans that may wait to be sent; more are dropped and counted
    #[arg(long, env = "OTEL_BSP_MAX_QUEUE_SIZE", hide_env_values = true, default_value_t = 16_384,
        value_parser = clap::value_parser!(u32).range(1..=10_000_000), value_name = "COUNT", help_heading = TRACES)]
    spans_queue: u32,

    /// Spans of one request
    #[arg(long, env = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", hide_env_values = true, default_value_t = 512,
        value_parser = clap::value_parser!(u32).range(1..=100_000), value_name = "COUNT", help_heading = TRACES)]
    spans_batch: u32,

    /// Longest time that a span waits for others
    #[arg(long, env = "OTEL_BSP_SCHEDULE_DELAY", hide_env_values = true, default_value_t = 1_000,
        value_parser = clap::value_parser!(u64).range(1..=600_000), value_name = "MILLISECONDS", help_heading = TRACES)]
    spans_delay: u64,

    /// Make no spans, whatever else is set
    #[arg(long, env = "OTEL_SDK_DISABLED", hide_env_values = true, value_parser = FalseyValueParser::new(), help_heading = TRACES)]
    no_spans: bool,
}

/// Hidden when the settings are printed.
#[derive(Clone)]
struct Hidden(String);

impl From<&str> for Hidden {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl std::fmt::Debug for Hidden {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl SpanArgs {
    /// None if no spans are exported. `instance` distinguishes this process from others of the service.
    pub(crate) fn exporter(&self, service: &str, instance: &str) -> Result<Option<Arc<Exporter>>, CliError> {
        Ok(self.settings(service, instance)?.map(Exporter::new))
    }

    /// Checked even if no spans are exported: a misspelt sampler should show before the day it is needed.
    pub(crate) fn settings(&self, service: &str, instance: &str) -> Result<Option<Settings>, CliError> {
        let sampler = self.sampler()?;
        let whole = filled(&self.otlp_traces_endpoint).map(|address| (address, true));
        let Some((address, whole)) = whole.or_else(|| filled(&self.otlp_endpoint).map(|address| (address, false))) else {
            return Ok(None);
        };
        let usage = |error: &dyn std::fmt::Display| CliError::Usage(format!("spans: {error}"));
        let files =
            TlsPaths { ca: self.otlp_ca.clone(), cert: self.otlp_client_cert.clone(), key: self.otlp_client_key.clone() };
        let tls = files.read(NAMES).map_err(|error| usage(&error))?;
        let settings = Settings::new(address, whole, self.otlp_protocol, tls).map_err(|error| usage(&error))?;
        let headers = self.otlp_headers.as_ref().map_or("", |headers| &headers.0);
        let settings = settings.headers(headers).map_err(|error| usage(&error))?;
        // The option for the service name counts before the list of attributes, and the list before the defaults.
        let settings = filled(&self.service_name).into_iter().fold(settings, |s, name| s.resource("service.name", name));
        let listed = self.resource_attributes.as_deref().unwrap_or_default();
        let settings = settings.resources(listed).map_err(|error| usage(&error))?;
        let mut settings = settings
            .resource("service.name", service)
            .resource("service.version", env!("CARGO_PKG_VERSION"))
            .resource("service.instance.id", instance);
        settings.sampler = sampler;
        settings.timeout = Duration::from_millis(self.otlp_timeout);
        settings.delay = Duration::from_millis(self.spans_delay);
        settings.batch = self.spans_batch as usize;
        settings.room = self.spans_queue as usize;
        let off = self.no_spans || (sampler.ratio <= 0.0 && !sampler.follow_parent);
        Ok(Some(settings).filter(|_| !off))
    }

    fn sampler(&self) -> Result<Sampler, CliError> {
        let name = self.traces_sampler.as_str();
        let wrong = |what: &str| Err(CliError::Usage(format!("--traces-sampler {name:?}: {what}")));
        let (follow_parent, rule) = name.strip_prefix("parentbased_").map_or((false, name), |rule| (true, rule));
        let ratio = match (rule, self.traces_sampler_arg) {
            ("always_on", _) => 1.0,
            ("always_off", _) => 0.0,
            ("traceidratio", None) => 1.0,
            ("traceidratio", Some(ratio)) if (0.0..=1.0).contains(&ratio) => ratio,
            ("traceidratio", Some(_)) => return wrong("its --traces-sampler-arg must be between 0 and 1"),
            _ => return wrong("there are always_on, always_off and traceidratio, each also after parentbased_"),
        };
        Ok(Sampler { ratio, follow_parent })
    }
}

/// An empty variable counts as unset.
fn filled(value: &Option<String>) -> Option<&str> {
    value.as_deref().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        spans: SpanArgs,
    }

    fn settings(arguments: &[&str]) -> Result<Option<Settings>, CliError> {
        let line = ["test"].iter().chain(arguments).copied();
        Line::try_parse_from(line).expect("good usage").spans.settings("lockgate", "one")
    }

    #[test]
    fn no_address_means_no_spans_and_mistakes_are_told_all_the_same() {
        assert!(settings(&[]).expect("good").is_none());
        assert!(settings(&["--otlp-endpoint", ""]).expect("good").is_none());
        for wrong in [
            ["--traces-sampler", "sometimes"],
            ["--otlp-endpoint", "collector"],
            ["--otlp-traces-endpoint", "ftp://collector"],
        ] {
            assert!(matches!(settings(&wrong), Err(CliError::Usage(_))), "{wrong:?}");
        }
        assert!(settings(&["--traces-sampler", "traceidratio", "--traces-sampler-arg", "2"]).is_err());
        assert!(Line::try_parse_from(["test", "--otlp-protocol", "http/json"]).is_err());
    }

    #[test]
    fn settings_arrive_where_they_act() {
        let on = |more: &[&str]| {
            let all: Vec<&str> = ["--otlp-endpoint", "http://127.0.0.1:4318"].iter().chain(more).copied().collect();
            settings(&all).expect("good")
        };
        let plain = on(&[]).expect("on");
        assert_eq!(plain.target(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(plain.sampler, Sampler { ratio: 1.0, follow_parent: true });
        let whole = on(&["--otlp-traces-endpoint", "http://127.0.0.1:9/in"]).expect("on");
        assert_eq!(whole.target(), "http://127.0.0.1:9/in");
        let some = on(&["--traces-sampler", "traceidratio", "--traces-sampler-arg", "0.25"]).expect("on");
        assert_eq!(some.sampler, Sampler { ratio: 0.25, follow_parent: false });
        let tuned = on(&["--spans-queue", "9", "--spans-batch", "3", "--spans-delay", "7", "--otlp-timeout", "5"]);
        let tuned = tuned.expect("on");
        assert_eq!((tuned.room, tuned.batch), (9, 3));
        assert_eq!((tuned.delay, tuned.timeout), (Duration::from_millis(7), Duration::from_millis(5)));
        assert!(on(&["--no-spans"]).is_none());
        assert!(on(&["--traces-sampler", "always_off"]).is_none());
        let secret = Line::try_parse_from(["test", "--otlp-headers", "key=s3cret"]).expect("good usage");
        assert!(!format!("{:?}", secret.spans).contains("s3cret"));
    }
}

//! Starting a run.

use clap::Args;
use lockgate_api::view;
use lockgate_core::request::Json;
use lockgate_core::trace::{BadParent, TraceParent};
use lockgate_proto::v1;
use serde_json::{Map, Value};

use super::watch;
use crate::args;
use crate::error::{CliError, Exit};
use crate::output::Tone;
use crate::session::CliSession;

/// Start a run
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:
  lockgate dag start transcode --param source=s3://in/a.mov --watch
  lockgate dag start etl --params @params.json --key 2030-01-31

A parameter that is JSON is taken as such: --param count=3 is a number, --param count='\"3\"' a text.")]
pub(super) struct StartRun {
    /// Name of the workflow
    dag: String,

    /// The latest, if absent
    #[arg(long)]
    version: Option<u32>,

    /// A parameter; can be given many times
    #[arg(long = "param", value_parser = args::pair, value_name = "NAME=VALUE")]
    param: Vec<(String, String)>,

    /// All parameters: a JSON map, @file, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-")]
    params: Option<String>,

    /// Idempotency key: starting again with the same key gives the same run
    #[arg(long, value_parser = args::name)]
    key: Option<String>,

    /// Do all of it, also what the same work done before could stand for
    #[arg(long)]
    no_memo: bool,

    /// W3C trace context of what this run is part of
    #[arg(long, env = "TRACEPARENT", hide_env_values = true, value_name = "CONTEXT")]
    traceparent: Option<String>,

    /// Follow the run until it is over
    #[arg(long)]
    watch: bool,
}

impl StartRun {
    pub(super) async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let params_json = params(self.params.as_deref(), self.param)?;
        let Self { dag, version, no_memo: fresh, .. } = self;
        let idempotency_key = self.key.unwrap_or_default();
        let request = v1::StartDagRequest { dag, version, params_json, idempotency_key, fresh };
        let mut request = tonic::Request::new(request);
        if let Some(context) = self.traceparent.filter(|context| !context.is_empty()) {
            let wrong = |_| CliError::Usage(format!("--traceparent {context:?}: {BadParent}"));
            let checked: TraceParent = context.parse().map_err(wrong)?;
            let value = checked.to_string().parse().map_err(|_| CliError::Usage(BadParent.to_string()))?;
            request.metadata_mut().insert("traceparent", value);
        }
        let response = session.orchestrator().start_dag(request).await;
        let started = view::StartedRun::from(session.answer(response)?);
        let out = session.out;
        if self.watch {
            return watch::follow(session, &started.run_id, 0).await;
        }
        if out.is_json() {
            out.json(&started)?;
        } else {
            let note = if started.existing { "was there already" } else { "started" };
            let of = format!("{} version {}", started.dag, started.version);
            out.line(&format!("{}  {of}  {}", started.run_id, out.paint(note, Tone::Faint)))?;
        }
        Ok(Exit::Success)
    }
}

/// Single ones win over the map.
pub(super) fn params(map: Option<&str>, single: Vec<(String, String)>) -> Result<bytes::Bytes, CliError> {
    let mut params: Map<String, Value> = match map {
        None => Map::new(),
        Some(text) => {
            let json = args::payload(text, &mut std::io::stdin()).map_err(CliError::Usage)?;
            // Standard input and files are text, or they would not have been read.
            match Json::read(&String::from_utf8_lossy(&json)) {
                Ok(Value::Object(map)) => map,
                Ok(_) => return Err(CliError::Usage("--params must be a JSON map".to_owned())),
                Err(error) => return Err(CliError::Usage(error.in_field("params").to_string())),
            }
        }
    };
    for (name, text) in single {
        let value = match Json::read(&text) {
            Ok(value) => value,
            Err(error) if error.is_syntax() => Value::String(text),
            Err(error) => return Err(CliError::Usage(error.in_field(&format!("params.{name}")).to_string())),
        };
        params.insert(name, value);
    }
    Ok(Value::Object(params).to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: Option<&str>, single: &[(&str, &str)]) -> Value {
        let single = single.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        serde_json::from_slice(&params(map, single).expect("good")).expect("JSON")
    }

    #[test]
    fn single_parameters_are_json_if_they_can_be_and_win_over_the_map() {
        let all = read(Some(r#"{"a":1,"b":2}"#), &[("b", "3"), ("c", "s3://x"), ("d", "\"4\"")]);
        assert_eq!(all, serde_json::json!({ "a": 1, "b": 3, "c": "s3://x", "d": "4" }));
        assert_eq!(read(None, &[]), serde_json::json!({}));
    }

    #[test]
    fn a_number_that_would_change_is_refused_and_not_taken_for_text() {
        let told = |text: &str| match params(None, vec![("id".to_owned(), text.to_owned())]) {
            Err(CliError::Usage(told)) => told,
            other => format!("{other:?}"),
        };
        assert!(told("9007199254740993").starts_with("params.id: is a whole number beyond"), "{}", told("9007199254740993"));
        assert!(told(r#"{"a":1,"a":2}"#).starts_with("params.id.a: is given twice"));
    }

    #[test]
    fn what_is_no_map_is_refused() {
        assert!(matches!(params(Some("[1]"), Vec::new()), Err(CliError::Usage(_))));
    }
}

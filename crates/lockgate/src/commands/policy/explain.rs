//! Why a job gets the verdict it gets, rule by rule.

use std::path::PathBuf;

use clap::Args;
use lockgate_api::view;
use lockgate_api::{explanation_from_wire, explanation_to_wire, subject_from_wire};
use lockgate_core::lane::Priority;
use lockgate_core::policy::{Explanation, Policy, Subject, Velocity, VelocityWindow};
use lockgate_core::request::Caller;
use lockgate_ports::clock::Clock;
use lockgate_proto::v1;

use super::{read, tell};
use crate::args;
use crate::cli::Connection;
use crate::clock::SystemClock;
use crate::commands::{verdict_text, wire_priority};
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Say why a job gets the verdict it gets, rule by rule
///
/// Nothing is submitted and nothing is counted. With --file, a policy file is asked instead of the server; no other job is
/// in its velocity windows.
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("which").required(true).args(["topic", "job"]))]
pub(super) struct Explain {
    /// Topic of a job that might be submitted
    #[arg(long)]
    topic: Option<String>,

    /// A job of the server, as it was submitted
    #[arg(long, value_name = "JOB", conflicts_with_all = ["payload", "priority", "labels", "requires", "capability", "risk_tags"])]
    job: Option<String>,

    /// What the job would get: JSON, @file, or - for standard input
    #[arg(long, default_value = "null", hide_default_value = true, value_name = "JSON|@FILE|-")]
    payload: String,

    /// How urgent it would be: critical, high, default or low
    #[arg(long)]
    priority: Option<Priority>,

    /// A label; can be given many times
    #[arg(long = "label", value_parser = args::pair, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,

    /// A capability that the worker must have; can be given many times
    #[arg(long = "require", value_name = "CAPABILITY")]
    requires: Vec<String>,

    /// What the job may do, in the words of the policy
    #[arg(long, value_parser = args::name, value_name = "NAME")]
    capability: Option<String>,

    /// What is risky about it, in the words of the policy; can be given many times
    #[arg(long = "risk-tag", value_name = "TAG")]
    risk_tags: Vec<String>,

    /// Ask this policy file instead of the one in force
    #[arg(long, value_name = "POLICY")]
    file: Option<PathBuf>,
}

impl Explain {
    pub(super) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let file = self.file.clone();
        let (subject, session) = match &self.job {
            None => (self.subject()?, None),
            Some(job_id) => {
                let mut session = CliSession::connect(connection, out).await?;
                (stored(&mut session, job_id).await?, Some(session))
            }
        };
        let explanation = match (file, session) {
            (Some(file), _) => {
                let name = file.display().to_string();
                match Policy::load(&name, &read(&file)?) {
                    Ok(policy) => offline(&policy, subject, connection)?,
                    Err(errors) => return tell(&errors, out),
                }
            }
            (None, Some(session)) => ask(&session, subject).await?,
            (None, None) => ask(&CliSession::connect(connection, out).await?, subject).await?,
        };
        show(&view::Explained::from(explanation_to_wire(&explanation)), out)
    }

    fn subject(self) -> Result<v1::Subject, CliError> {
        Ok(v1::Subject {
            payload_json: args::payload(&self.payload, &mut std::io::stdin()).map_err(CliError::Usage)?,
            topic: self.topic.unwrap_or_default(),
            priority: wire_priority(self.priority).into(),
            labels: self.labels.into_iter().collect(),
            requires: self.requires,
            capability: self.capability.unwrap_or_default(),
            risk_tags: self.risk_tags,
            ..v1::Subject::default()
        })
    }
}

async fn stored(session: &mut CliSession, job_id: &str) -> Result<v1::Subject, CliError> {
    let response = session.client.get_job(v1::GetJobRequest { job_id: job_id.to_owned() }).await;
    session.answer(response).map(subject_of)
}

/// What policy sees of a stored job.
fn subject_of(job: v1::Job) -> v1::Subject {
    v1::Subject {
        priority: job.priority,
        job_id: job.job_id,
        tenant: job.tenant,
        actor: job.actor,
        actor_type: job.actor_type,
        topic: job.topic,
        capability: job.capability,
        risk_tags: job.risk_tags,
        requires: job.requires,
        labels: job.labels,
        payload_json: job.payload_json,
    }
}

async fn ask(session: &CliSession, subject: v1::Subject) -> Result<Explanation, CliError> {
    let response = session.kernel().explain(v1::ExplainRequest { subject: Some(subject) }).await;
    let explanation = explanation_from_wire(session.answer(response)?);
    explanation.ok_or_else(|| CliError::Server("the server answered without a verdict".to_owned()))
}

/// Windows in which the job is alone.
struct Alone;

impl Velocity for Alone {
    fn count(&self, _: &VelocityWindow<'_>) -> u64 {
        1
    }
}

fn offline(policy: &Policy, subject: v1::Subject, connection: &Connection) -> Result<Explanation, CliError> {
    let name = |given: &Option<String>, default: &str| given.clone().unwrap_or_else(|| default.to_owned());
    let (tenant, actor) = (name(&connection.tenant, "default"), name(&connection.actor, "anonymous"));
    let caller = Caller::of_kind(tenant, actor, connection.actor_type.as_deref().map(Into::into));
    let request = subject_from_wire(subject, &caller).map_err(|errors| CliError::Refused {
        message: "no such job could be submitted".to_owned(),
        fields: errors.iter().map(ToString::to_string).collect(),
    })?;
    Ok(policy.explain(&Subject::new(&request, SystemClock.now()), &Alone))
}

fn show(explained: &view::Explained, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(explained)?;
    } else {
        out.line(&text(explained, out))?;
    }
    Ok(Exit::Success)
}

fn text(explained: &view::Explained, out: Output) -> String {
    let mut text = verdict_text(&explained.verdict, out);
    if !explained.steps.is_empty() {
        let row = |step: &view::Step| {
            let tone = match step.outcome.as_str() {
                "matched" => Tone::Good,
                "failed" => Tone::Bad,
                _ => Tone::Faint,
            };
            let why = step.why.as_deref().unwrap_or_default();
            vec![
                TableCell::text(&step.rule),
                TableCell::text(&step.scope),
                TableCell::text(&step.outcome).toned(tone),
                TableCell::text(why),
            ]
        };
        let rows: Vec<_> = explained.steps.iter().map(row).collect();
        text.push_str(&format!("\n\n{}", out.table(&["rule", "part", "outcome", "why"], &rows)));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    const POLICY: &str = "\
version: 1
default: {decision: allow}
rules:
  - id: robots
    match: {topics: [job.deploy], actor_types: [agent]}
    decision: deny
    reason: people only
  - id: burst
    match: {topics: [job.deploy], velocity: {max: 1, window: 1m}}
    decision: throttle
    reason: slow down
";

    fn explained(topic: &str, connection: &Connection) -> Result<Explanation, CliError> {
        let policy = Policy::load("p", POLICY).expect("a policy");
        offline(&policy, v1::Subject { topic: topic.to_owned(), ..v1::Subject::default() }, connection)
    }

    fn connection(words: &[&str]) -> Connection {
        Cli::try_parse_from([&["lockgate", "queues"], words].concat()).expect("good usage").connection
    }

    #[test]
    fn a_file_is_asked_for_whoever_calls_and_with_empty_windows() {
        let person = explained("job.deploy", &connection(&[])).expect("explained");
        assert_eq!((person.verdict.decision.as_str(), person.looks.len()), ("allow", 2));
        let agent = explained("job.deploy", &connection(&["--actor-type", "agent"])).expect("explained");
        assert_eq!(&*agent.verdict.rule, "robots");
    }

    #[test]
    fn a_job_that_could_not_be_submitted_is_not_explained() {
        let error = explained("no topic", &connection(&[])).expect_err("refused");
        assert!(error.to_string().contains("topic: "), "{error}");
    }
}

//! `lockgate submit`: send a job, and wait for it if asked.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;
use lockgate_api::view;
use lockgate_core::lane::Priority;
use lockgate_ports::clock::Clock;
use lockgate_proto::v1;
use lockgate_proto::v1::watch_job_response::Item;

use super::retry::{self, RetryPart};
use super::{end_of, wire_priority};
use crate::args;
use crate::clock::SystemClock;
use crate::error::{CliError, Exit};
use crate::follow::follow;
use crate::live::LiveBar;
use crate::output::{Output, Tone};
use crate::session::CliSession;

/// Submit a job
#[derive(Args, Debug)]
#[command(after_long_help = "Examples:
  lockgate submit job.echo --payload '{\"hello\":\"world\"}' --wait
  lockgate submit job.http_call --payload @call.json --key order-17 --deadline 1h")]
pub(crate) struct Submit {
    /// What kind of work it is
    topic: String,

    /// What the job gets: JSON, @file, or - for standard input
    #[arg(long, default_value = "null", hide_default_value = true, value_name = "JSON|@FILE|-")]
    payload: String,

    /// How urgent it is: critical, high, default or low
    #[arg(long)]
    priority: Option<Priority>,

    /// A label; can be given many times
    #[arg(long = "label", value_parser = args::pair, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,

    /// A variable for the code that runs the job; can be given many times
    #[arg(long, value_parser = args::pair, value_name = "NAME=VALUE")]
    env: Vec<(String, String)>,

    /// Idempotency key: submitting again with the same key gives the same job
    #[arg(long, value_parser = args::name)]
    key: Option<String>,

    /// Id of the job, instead of one that the server makes
    #[arg(long, value_parser = args::name, value_name = "ID")]
    job_id: Option<String>,

    /// Attempts that may fail before the job is dead
    #[arg(long, value_name = "COUNT")]
    max_attempts: Option<u32>,

    /// How it is tried again: base=1s, factor=2, cap=30s, jitter_percent=50, total=1h, losses=6 or non_retryable=CODE; can be given
    /// many times. What is left out is as the topic or the server has it
    #[arg(long = "retry", value_parser = retry::part, value_name = "NAME=VALUE")]
    retry: Vec<RetryPart>,

    /// Longest time of one attempt, such as 30s
    #[arg(long, value_parser = args::duration, value_name = "SPAN")]
    timeout: Option<Duration>,

    /// Start no sooner than this from now, such as 5s
    #[arg(long, value_parser = args::duration, value_name = "SPAN", conflicts_with = "not_before")]
    delay: Option<Duration>,

    /// Start no sooner than this, such as 2030-01-31T08:00:00Z
    #[arg(long, value_parser = args::timestamp, value_name = "TIME")]
    not_before: Option<Timestamp>,

    /// Give the job up when it has not ended after this, such as 1h
    #[arg(long, value_parser = args::duration, value_name = "SPAN")]
    deadline: Option<Duration>,

    /// A capability that the worker must have; can be given many times
    #[arg(long = "require", visible_alias = "requires", value_name = "CAPABILITY")]
    requires: Vec<String>,

    /// Jobs with the same key share the limits that pools.yaml sets per key
    #[arg(long, value_parser = args::name, value_name = "KEY")]
    concurrency_key: Option<String>,

    /// What the job may do, in the words of the policy
    #[arg(long, value_parser = args::name, value_name = "NAME")]
    capability: Option<String>,

    /// What is risky about it, in the words of the policy; can be given many times
    #[arg(long = "risk-tag", value_name = "TAG")]
    risk_tags: Vec<String>,

    /// Workflow that the job is part of: its jobs are undone together
    #[arg(long, value_parser = args::name, value_name = "ID")]
    workflow_id: Option<String>,

    /// What undoes the job's work: JSON with topic and payload, or @file
    #[arg(long, value_name = "JSON|@FILE")]
    compensation: Option<String>,

    /// Trace that the job belongs to
    #[arg(long, value_parser = args::name, value_name = "ID")]
    trace_id: Option<String>,

    /// W3C trace context of what this job is part of
    #[arg(
        long,
        env = "TRACEPARENT",
        hide_env_values = true,
        default_value = "",
        hide_default_value = true,
        value_name = "CONTEXT"
    )]
    traceparent: String,

    /// Wait until the job ends and print its result
    #[arg(long)]
    wait: bool,
}

impl Submit {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let wait = self.wait;
        let job = self.into_job(Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default())?;
        let response = session.client.submit_job(v1::SubmitJobRequest { job: Some(job) }).await;
        let submitted = view::Submitted::from(session.answer(response)?);
        if wait {
            return wait_for(session, &submitted).await;
        }
        if session.out.is_json() {
            session.out.json(&submitted)?;
        } else {
            session.out.line(&submitted_line(&submitted, session.out))?;
        }
        Ok(Exit::Success)
    }

    fn into_job(self, now: Timestamp) -> Result<v1::NewJob, CliError> {
        let payload_json = args::payload(&self.payload, &mut std::io::stdin()).map_err(CliError::Usage)?;
        let undo = self.compensation.map(|text| args::payload(&text, &mut std::io::stdin())).transpose();
        let compensation_json = undo.map_err(CliError::Usage)?.unwrap_or_default();
        let in_ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let delayed = self.delay.and_then(|delay| now.checked_add(delay).ok());
        Ok(v1::NewJob {
            job_id: self.job_id.unwrap_or_default(),
            topic: self.topic,
            payload_json,
            priority: wire_priority(self.priority).into(),
            labels: self.labels.into_iter().collect(),
            env: self.env.into_iter().collect(),
            idempotency_key: self.key.unwrap_or_default(),
            max_attempts: self.max_attempts,
            timeout_ms: self.timeout.map(in_ms),
            not_before_ms: self.not_before.or(delayed).map(Timestamp::as_millisecond),
            deadline_ms: self.deadline.map(in_ms),
            requires: self.requires,
            trace_id: self.trace_id.unwrap_or_default(),
            traceparent: self.traceparent,
            capability: self.capability.unwrap_or_default(),
            risk_tags: self.risk_tags,
            concurrency_key: self.concurrency_key.unwrap_or_default(),
            workflow_id: self.workflow_id.unwrap_or_default(),
            compensation_json,
            budget: None,
            retry: retry::policy(&self.retry),
        })
    }
}

fn submitted_line(submitted: &view::Submitted, out: Output) -> String {
    let note = if submitted.existing { "was there already" } else { submitted.ack.as_str() };
    format!("{}  {}  {}", submitted.job_id, out.state(&submitted.state), out.paint(note, Tone::Faint))
}

async fn wait_for(session: &mut CliSession, submitted: &view::Submitted) -> Result<Exit, CliError> {
    let out = session.out;
    out.remark(&submitted_line(submitted, out));
    let live = LiveBar::new(out, String::from(&submitted.state));
    let job = follow(session, &submitted.job_id, 0, |item| {
        live.say(item_text(&item));
        Ok(())
    })
    .await;
    live.clear();
    let job = job?;
    let exit = end_of(&job);
    let job = view::Job::full(job);
    if out.is_json() {
        out.json(&job)?;
    } else if exit == Exit::Success && job.payload_hidden {
        // Nothing, rather than `null`, which may be a result.
        out.remark("its result is hidden: the credential has no --payloads");
    } else if exit == Exit::Success {
        out.line(job.result.as_ref().map_or("null", |result| result.get()))?;
    } else {
        let error = job.last_error.map(|error| format!(": {}: {}", error.reason, error.message)).unwrap_or_default();
        eprintln!("{} {}{error}", job.job_id, out.state(&job.state));
        out.remark(&format!("`lockgate get {}` shows its attempts", job.job_id));
    }
    Ok(exit)
}

fn item_text(item: &Item) -> String {
    match item {
        Item::Event(event) => event_text(event),
        Item::Progress(progress) => format!("{}% {}", progress.percent, progress.message),
    }
}

fn event_text(event: &v1::JobEvent) -> String {
    let worker = if event.worker_id.is_empty() { String::new() } else { format!(" on {}", event.worker_id) };
    let message = if event.message.is_empty() { String::new() } else { format!(": {}", event.message) };
    format!("{}, attempt {}{worker}{message}", event.kind, event.attempt)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        submit: Submit,
    }

    fn job(words: &[&str]) -> v1::NewJob {
        let line = Line::try_parse_from([&["submit"], words].concat()).expect("good usage");
        line.submit.into_job(Timestamp::from_second(10).expect("in range")).expect("a job")
    }

    #[test]
    fn only_what_was_typed_is_sent() {
        let bare = v1::NewJob { topic: "job.noop".to_owned(), payload_json: "null".into(), ..v1::NewJob::default() };
        assert_eq!(job(&["job.noop"]), bare);
    }

    #[test]
    fn every_option_reaches_the_job() {
        let words = "job.echo --payload [1] --priority high --label a=b --env c=d --key k --job-id i --max-attempts 5 \
                     --timeout 30s --delay 5s --deadline 1h --require gpu --requires ssd --trace-id t --traceparent p --capability deploy \
                     --risk-tag money --risk-tag external --concurrency-key c";
        let job = job(&words.split_whitespace().collect::<Vec<_>>());
        let expected = v1::NewJob {
            job_id: "i".to_owned(),
            topic: "job.echo".to_owned(),
            payload_json: "[1]".into(),
            priority: v1::Priority::High.into(),
            labels: [("a".to_owned(), "b".to_owned())].into(),
            env: [("c".to_owned(), "d".to_owned())].into(),
            idempotency_key: "k".to_owned(),
            max_attempts: Some(5),
            timeout_ms: Some(30_000),
            not_before_ms: Some(15_000),
            deadline_ms: Some(3_600_000),
            requires: vec!["gpu".to_owned(), "ssd".to_owned()],
            trace_id: "t".to_owned(),
            traceparent: "p".to_owned(),
            capability: "deploy".to_owned(),
            risk_tags: vec!["money".to_owned(), "external".to_owned()],
            concurrency_key: "c".to_owned(),
            ..v1::NewJob::default()
        };
        assert_eq!(job, expected);
    }

    #[test]
    fn a_name_that_is_empty_is_refused_by_its_option() {
        for option in ["--key", "--job-id", "--workflow-id", "--trace-id", "--concurrency-key", "--capability"] {
            let error = Line::try_parse_from(["submit", "job.noop", option, ""]).err().expect("refused").to_string();
            assert!(error.contains(&format!("for '{option} <")) && error.contains("must not be empty"), "{error}");
        }
    }

    #[test]
    fn a_delay_and_a_time_exclude_each_other() {
        let words = ["submit", "job.noop", "--delay", "5s", "--not-before", "2030-01-31T08:00:00Z"];
        assert!(Line::try_parse_from(words).is_err());
    }
}

//! `lockgate get`: everything about one job.

use clap::Args;
use lockgate_api::view;
use lockgate_proto::v1;

use super::{constraints_text, jobs, retry};
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone, span};
use crate::session::CliSession;

/// Children listed with their parent.
const CHILDREN_SHOWN: u32 = 20;

/// Show a job with its attempts, its children and its result
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

impl GetArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let response = session.client.get_job(v1::GetJobRequest { job_id: self.job_id }).await;
        let job = view::Job::full(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&job)?;
            return Ok(Exit::Success);
        }
        let children = if job.children.is_some() { Some(children(session, &job.job_id).await?) } else { None };
        let mut shown = text(&job, session.out);
        if let Some(page) = children.filter(|page| !page.jobs.is_empty()) {
            shown = format!("{shown}\n\n{}", jobs::table(&page, session.out));
        }
        session.out.line(&shown)?;
        Ok(Exit::Success)
    }
}

/// The latest of them: `lockgate jobs --parent` has the others.
async fn children(session: &mut CliSession, parent: &str) -> Result<view::Jobs, CliError> {
    let request =
        v1::ListJobsRequest { parent_job_id: parent.to_owned(), limit: CHILDREN_SHOWN, ..v1::ListJobsRequest::default() };
    let response = session.client.list_jobs(request).await;
    Ok(view::Jobs::from(session.answer(response)?))
}

/// The job for people: facts, then attempts, then what came out.
pub(crate) fn text(job: &view::Job, out: Output) -> String {
    let mut parts = vec![out.fields(&facts(job, out))];
    let attempts = job.attempts.as_deref().unwrap_or_default();
    if !attempts.is_empty() {
        let rows: Vec<_> = attempts.iter().map(|attempt| attempt_row(attempt, out)).collect();
        parts.push(out.table(&["attempt", "worker", "outcome", "started", "took", "reason", "message"], &rows));
    }
    if let Some(error) = &job.last_error {
        parts.push(format!("{} {}: {}", out.paint("last error", Tone::Bad), error.reason, error.message));
    }
    if let Some(result) = &job.result {
        parts.push(format!("{} {result}", out.paint("result", Tone::Good)));
    }
    parts.join("\n\n")
}

fn facts<'a>(job: &'a view::Job, out: Output) -> Vec<(&'static str, TableCell)> {
    let moment = |at: view::Time| TableCell::text(out.moment(at));
    let pairs = |map: &'a std::collections::BTreeMap<String, String>| {
        let list: Vec<String> = map.iter().map(|(name, value)| format!("{name}={value}")).collect();
        (!list.is_empty()).then(|| TableCell::text(list.join(" ")))
    };
    let text = |text: &Option<String>| text.as_ref().map(TableCell::text);
    let progress = job.progress.as_ref().map(|p| TableCell::text(format!("{}% {}", p.percent, p.message).trim_end()));
    let requires = (!job.requires.is_empty()).then(|| TableCell::text(job.requires.join(" ")));
    // Without a credential the actor's name is only claimed.
    let marks = [job.actor_type.as_deref(), (!job.actor_verified).then_some("unverified")];
    let by: Vec<&str> = std::iter::once(job.actor.as_str()).chain(marks.into_iter().flatten()).collect();
    let actor = format!("{} (by {})", job.tenant, by.join(", "));
    let risk_tags = (!job.risk_tags.is_empty()).then(|| TableCell::text(job.risk_tags.join(" ")));
    let failures = format!("{} of {}", job.failures, job.max_attempts);
    let losses = format!("{} of {}", job.losses, job.retry.losses);
    // What was done at once needs none.
    let retries = (job.failures + job.losses > 0 || matches!(&*job.phase, "QUEUED" | "RUNNING"))
        .then(|| TableCell::text(retry::line(job)));
    let facts = [
        ("job", Some(TableCell::text(&job.job_id))),
        ("state", Some(TableCell::state(&job.state))),
        ("topic", Some(TableCell::text(&job.topic))),
        ("tenant", Some(TableCell::text(actor))),
        ("priority", Some(TableCell::text(&job.priority))),
        ("failures", (job.failures > 0).then(|| TableCell::text(failures))),
        ("losses", (job.losses > 0).then(|| TableCell::text(losses))),
        ("retries", retries),
        ("life", (job.life > 1).then(|| TableCell::text(job.life.to_string()))),
        ("progress", progress),
        ("submitted", Some(moment(job.submitted_at))),
        ("due", job.due_at.map(moment)),
        ("deadline", job.deadline_at.map(moment)),
        ("ended", job.ended_at.map(moment)),
        ("parent", text(&job.parent_job_id)),
        ("children", job.children.as_ref().map(|children| TableCell::text(children_line(children, out)))),
        ("requires", requires),
        ("capability", text(&job.capability)),
        ("risk tags", risk_tags),
        ("labels", pairs(&job.labels)),
        ("platform", pairs(&job.platform_labels)),
        ("env", pairs(&job.env)),
        ("key", text(&job.idempotency_key)),
        ("shares limits", text(&job.concurrency_key)),
        (
            "discarded",
            job.discarded.as_ref().map(|discard| TableCell::text(format!("by {}: {}", discard.actor, discard.reason))),
        ),
        ("trace", (!job.trace_id.is_empty()).then(|| TableCell::text(&job.trace_id))),
        ("payload", payload(job)),
    ];
    facts.into_iter().chain(decisions(job, out)).filter_map(|(name, field)| field.map(|field| (name, field))).collect()
}

/// A result that is not shown is no result of `null`.
fn payload(job: &view::Job) -> Option<TableCell> {
    if job.payload_hidden {
        return Some(TableCell::text("hidden, and so are environment and result: the credential has no --payloads"));
    }
    job.payload.as_ref().map(|payload| TableCell::clipped(payload.get()))
}

/// What policy and people said about it.
fn decisions(job: &view::Job, out: Output) -> [(&'static str, Option<TableCell>); 3] {
    [
        ("verdict", job.verdict.as_ref().map(|verdict| TableCell::text(verdict_line(verdict)))),
        ("approval", job.approval.as_ref().map(|approval| TableCell::text(approval_line(approval, out)))),
        ("output", job.output.as_ref().map(|check| TableCell::text(output_line(check)))),
    ]
}

fn children_line(children: &view::Children, out: Output) -> String {
    let ended = children.total.saturating_sub(children.live);
    let waits = children.waits_until.map(|at| {
        let then = match children.on_timeout.as_deref() {
            Some("review") => "a person is asked",
            _ => "it fails",
        };
        format!(", waits for them until {}; then {then}", out.moment(at))
    });
    format!("{ended} of {} ended{}", children.total, waits.unwrap_or_default())
}

fn verdict_line(verdict: &view::Verdict) -> String {
    let constraints = verdict.constraints.as_ref().map(|constraints| format!(" [{}]", constraints_text(constraints)));
    format!("{} by {}: {}{}", verdict.decision, verdict.rule, verdict.reason, constraints.unwrap_or_default())
}

fn approval_line(approval: &view::AskedApproval, out: Output) -> String {
    let by: Vec<&str> = approval.votes.iter().map(|vote| vote.actor.as_str()).collect();
    let by = if by.is_empty() { String::new() } else { format!(" ({})", by.join(", ")) };
    let until = match (approval.granted_at, approval.expires_at) {
        (Some(at), _) => format!(", granted {}", out.relative(at)),
        (None, Some(at)) => format!(", expires {}", out.relative(at)),
        (None, None) => String::new(),
    };
    format!("{} of {}{by} for {}{until}", approval.votes.len(), approval.approvers_needed, approval.rule)
}

fn output_line(check: &view::OutputCheck) -> String {
    let Some(decision) = &check.decision else { return check.stage.to_string() };
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let found = match check.findings.len() {
        0 => String::new(),
        1 => " (1 finding)".to_owned(),
        findings => format!(" ({findings} findings)"),
    };
    let released = check.released_by.as_ref().map(|who| format!(", released by {who}")).unwrap_or_default();
    format!("{decision} by {}: {}{found}{released}", text(&check.rule), text(&check.reason))
}

fn attempt_row(attempt: &view::Attempt, out: Output) -> Vec<TableCell> {
    let took = attempt.started_at.or(attempt.dispatched_at).zip(attempt.ended_at).map(|(from, to)| {
        let ms = to.0.as_millisecond() - from.0.as_millisecond();
        span(std::time::Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    });
    let outcome = attempt.outcome.as_deref().unwrap_or("-");
    let tone = match outcome {
        "succeeded" => Tone::Good,
        "-" | "snoozed" | "cancelled" | "given_back" | "waiting_for_children" => Tone::Plain,
        _ => Tone::Bad,
    };
    vec![
        TableCell::number(&attempt.no),
        TableCell::text(attempt.worker_id.as_deref().unwrap_or("-")),
        TableCell::text(outcome).toned(tone),
        out.relative_or_dash(attempt.started_at),
        TableCell::text(took.unwrap_or_else(|| "-".to_owned())),
        TableCell::text(attempt.reason.as_deref().unwrap_or_default()),
        TableCell::clipped(attempt.message.as_deref().unwrap_or_default()),
    ]
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn what_is_not_for_the_caller_is_said_to_be_hidden() {
        let job = v1::Job { payload_hidden: true, ..v1::Job::default() };
        let shown = text(&view::Job::full(job), Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH));
        assert!(shown.contains("payload") && shown.contains("hidden, and so are environment and result"), "{shown}");
    }

    #[test]
    fn facts_attempts_and_result_are_shown_and_nothing_that_is_absent() {
        let job = v1::Job {
            job_id: "a".to_owned(),
            tenant: "default".to_owned(),
            actor: "anonymous".to_owned(),
            topic: "job.echo".to_owned(),
            state: v1::JobState::Succeeded.into(),
            priority: v1::Priority::Default.into(),
            result_json: "{\"hello\":1}".into(),
            submitted_at_ms: 1_000,
            history: vec![v1::Attempt {
                no: 1,
                worker_id: "w1".to_owned(),
                started_at_ms: Some(2_000),
                ended_at_ms: Some(2_040),
                outcome: "succeeded".to_owned(),
                ..v1::Attempt::default()
            }],
            ..v1::Job::default()
        };
        let now = Timestamp::from_second(3).expect("in range");
        let expected = "job        a
state      SUCCEEDED
topic      job.echo
tenant     default (by anonymous, unverified)
priority   default
submitted  1970-01-01 00:00:01 UTC (2s ago)

ATTEMPT  WORKER  OUTCOME    STARTED  TOOK  REASON  MESSAGE
      1  w1      succeeded  1s ago   40ms

result {\"hello\":1}";
        assert_eq!(text(&view::Job::full(job), Output::new(Format::People { colour: false }, now)), expected);
    }
}

//! `lockgate approvals`: what policy asks people, and their answers.

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_core::job::Answer;
use lockgate_proto::v1;

use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::session::CliSession;

/// Look at jobs that wait for a person, and answer
#[derive(Args, Debug)]
pub(crate) struct ApprovalsArgs {
    #[command(subcommand)]
    command: ApprovalCommand,
}

#[derive(Debug, Subcommand)]
enum ApprovalCommand {
    List(ListApprovals),
    Show(ShowApproval),
    Approve(Approve),
    Reject(Reject),
}

/// List open questions, oldest first
#[derive(Args, Debug)]
struct ListApprovals {
    /// Questions on a page
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,

    /// Where the previous page ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

/// Show what was asked about a job
#[derive(Args, Debug)]
struct ShowApproval {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,
}

/// Agree that a job runs, as it is now; the submitter cannot
#[derive(Args, Debug)]
struct Approve {
    #[command(flatten)]
    answer: ApprovalAnswer,

    /// Approve although this credential does not show the payload; the records say so
    #[arg(long)]
    acknowledge_hidden: bool,
}

/// Refuse that a job runs; it ends as DENIED
#[derive(Args, Debug)]
struct Reject {
    #[command(flatten)]
    answer: ApprovalAnswer,
}

#[derive(Args, Debug)]
struct ApprovalAnswer {
    /// Id of the job
    #[arg(value_name = "JOB")]
    job_id: String,

    /// Why, for the records
    #[arg(long, default_value = "", hide_default_value = true, value_name = "TEXT")]
    note: String,
}

impl ApprovalsArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        match self.command {
            ApprovalCommand::List(command) => command.run(session).await,
            ApprovalCommand::Show(command) => command.run(session).await,
            ApprovalCommand::Approve(command) => {
                command.answer.send(session, Answer::Approve, command.acknowledge_hidden).await
            }
            ApprovalCommand::Reject(command) => command.answer.send(session, Answer::Reject, false).await,
        }
    }
}

impl ListApprovals {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let request = v1::ListApprovalsRequest { limit: self.limit, cursor: self.cursor };
        let response = session.approvals().list_approvals(request).await;
        let page = view::Approvals::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&page)?;
            return Ok(Exit::Success);
        }
        if page.approvals.is_empty() && page.next_cursor.is_none() {
            out.remark("nothing waits for an approval");
        } else {
            out.line(&table(&page, out))?;
        }
        if let Some(cursor) = page.next_cursor {
            out.remark(&format!("more with --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

fn table(page: &view::Approvals, out: Output) -> String {
    let row = |question: &view::Approval| {
        vec![
            TableCell::text(&question.job_id),
            TableCell::text(&question.topic),
            TableCell::text(&question.submitter),
            TableCell::text(&question.rule),
            TableCell::number(&format!("{}/{}", question.approved_by.len(), question.approvers_needed)),
            out.relative_or_dash(Some(question.asked_at)),
            out.relative_or_dash(question.expires_at),
            TableCell::clipped(&question.reason),
        ]
    };
    let rows: Vec<_> = page.approvals.iter().map(row).collect();
    out.table(&["job", "topic", "submitter", "rule", "votes", "asked", "expires", "reason"], &rows)
}

impl ShowApproval {
    async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let question = fetch(session, self.job_id).await?;
        if session.out.is_json() {
            session.out.json(&question)?;
        } else {
            session.out.line(&text(&question, session.out))?;
        }
        Ok(Exit::Success)
    }
}

/// What was asked about the job, as it is now.
async fn fetch(session: &mut CliSession, job_id: String) -> Result<view::Approval, CliError> {
    let response = session.client.get_job(v1::GetJobRequest { job_id }).await;
    let job = session.answer(response)?;
    let none = format!("job {} is {}: nobody was asked for an approval", job.job_id, view::JobStateName::from(job.state()));
    view::Approval::of(job).ok_or_else(|| CliError::not_found("approval", none))
}

fn text(question: &view::Approval, out: Output) -> String {
    let labels: Vec<String> = question.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let list = |items: &[String]| (!items.is_empty()).then(|| TableCell::text(items.join(" ")));
    let votes = format!("{} of {}", question.approved_by.len(), question.approvers_needed);
    let hidden = || TableCell::text("hidden from this credential; approve with --acknowledge-hidden").toned(Tone::Waiting);
    let shown = question.payload.as_ref().map(|payload| TableCell::text(payload.get()));
    let payload = if question.payload_hidden { Some(hidden()) } else { shown };
    let facts = [
        ("job", Some(TableCell::text(&question.job_id))),
        ("topic", Some(TableCell::text(&question.topic))),
        ("submitter", Some(TableCell::text(&question.submitter))),
        ("capability", question.capability.as_ref().map(TableCell::text)),
        ("risk tags", list(&question.risk_tags)),
        ("labels", list(&labels)),
        ("payload", payload),
        ("rule", Some(TableCell::text(&question.rule))),
        ("reason", Some(TableCell::text(&question.reason))),
        ("votes", Some(TableCell::text(votes))),
        ("approved by", list(&question.approved_by)),
        ("asked", Some(TableCell::text(out.moment(question.asked_at)))),
        ("expires", question.expires_at.map(|at| TableCell::text(out.moment(at)))),
        ("request", Some(TableCell::text(&question.request_hash).toned(Tone::Faint))),
    ];
    let facts: Vec<_> = facts.into_iter().filter_map(|(name, field)| field.map(|field| (name, field))).collect();
    out.fields(&facts)
}

impl ApprovalAnswer {
    /// The hashes bind the answer to what was shown: whatever the job or the rule becomes meanwhile is not answered.
    async fn send(self, session: &mut CliSession, answer: Answer, acknowledge_hidden: bool) -> Result<Exit, CliError> {
        let question = fetch(session, self.job_id).await?;
        let out = session.out;
        out.remark(&text(&question, out));
        let request = v1::AnswerApprovalRequest {
            job_id: question.job_id,
            request_hash: question.request_hash,
            rule_hash: question.rule_hash,
            note: self.note,
            acknowledge_hidden,
        };
        let response = match answer {
            Answer::Approve => session.approvals().approve(request).await,
            Answer::Reject => session.approvals().reject(request).await,
        };
        let answered = view::Answered::from(session.answer(response)?);
        if out.is_json() {
            out.json(&answered)?;
        } else {
            let votes = format!("{} of {} approved", answered.approved_by.len(), answered.approvers_needed);
            out.line(&format!("{}  {}  {votes}", answered.job_id, out.state(&answered.state)))?;
        }
        Ok(Exit::Success)
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn a_question_shows_what_is_approved() {
        let job = v1::Job {
            job_id: "a".to_owned(),
            topic: "job.deploy".to_owned(),
            actor: "ann".to_owned(),
            payload_json: r#"{"to":"production"}"#.into(),
            risk_tags: vec!["outage".to_owned()],
            request_hash: "00ff".to_owned(),
            verdict: Some(v1::Verdict { reason: "two people".to_owned(), ..v1::Verdict::default() }),
            approval: Some(v1::AskedApproval {
                rule: "deploys".to_owned(),
                approvers_needed: 2,
                votes: vec![v1::asked_approval::Vote { actor: "bob".to_owned(), ..Default::default() }],
                asked_at_ms: 1_000,
                ..v1::AskedApproval::default()
            }),
            ..v1::Job::default()
        };
        let now = Timestamp::from_second(3).expect("in range");
        let unseen = v1::Job { payload_json: Default::default(), payload_hidden: true, ..job.clone() };
        let unseen = view::Approval::of(unseen).expect("asked");
        let unseen = text(&unseen, Output::new(Format::People { colour: false }, now));
        assert!(unseen.contains("payload      hidden from this credential; approve with --acknowledge-hidden"), "{unseen}");
        let question = view::Approval::of(job).expect("asked");
        let expected = r#"job          a
topic        job.deploy
submitter    ann
risk tags    outage
payload      {"to":"production"}
rule         deploys
reason       two people
votes        1 of 2
approved by  bob
asked        1970-01-01 00:00:01 UTC (2s ago)
request      00ff"#;
        assert_eq!(text(&question, Output::new(Format::People { colour: false }, now)), expected);
    }
}

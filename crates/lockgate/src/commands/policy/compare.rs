//! What another policy would have decided about jobs of the past.

use std::time::Duration;

use clap::Args;
use lockgate_core::verdict::Verdict;
use lockgate_proto::{v1, verdict_from_wire};
use serde::Serialize;
use tonic::Code;

use super::explain::subject_of;
use super::{Source, Text};
use crate::args;
use crate::error::{CliError, Exit};
use crate::output::{Field, Output};
use crate::session::Session;
use crate::view;

const PAGE: u32 = 1_000;
/// A request is sent when its payloads reach this, well below what a server takes.
const BATCH_BYTES: usize = 4 * 1024 * 1024;
const BATCH_JOBS: usize = 1_000;

/// Judge stored jobs by another policy and print the verdicts that would change
///
/// The verdicts on record are compared with those of the new policy. Velocity windows are as they are now on the server.
#[derive(Args, Debug)]
pub(super) struct Simulate {
    /// The new policy: a file, or a snapshot of the server
    #[arg(long, value_name = "POLICY")]
    policy: Source,

    #[command(flatten)]
    which: Which,
}

/// Judge stored jobs by two policies and print where they differ
#[derive(Args, Debug)]
pub(super) struct Diff {
    /// A policy: a file, or a snapshot of the server
    old: Source,

    /// Another policy
    new: Source,

    #[command(flatten)]
    which: Which,
}

#[derive(Args, Clone, Copy, Debug)]
struct Which {
    /// Only jobs submitted in the last of this, such as 24h
    #[arg(long, value_parser = args::duration, value_name = "SPAN")]
    since: Option<Duration>,

    /// At most so many jobs, the newest
    #[arg(long, default_value_t = 1_000, value_name = "COUNT")]
    limit: usize,
}

/// What the comparison found.
#[derive(Debug, Default, Serialize)]
struct Compared {
    judged: usize,
    changed: Vec<Change>,
}

#[derive(Debug, Serialize)]
struct Change {
    job_id: String,
    topic: String,
    /// Absent for a job that was never judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<view::Verdict>,
    new: view::Verdict,
}

impl Simulate {
    pub(super) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        let Some(new) = self.policy.text(session).await? else { return Ok(Exit::Error) };
        let compared = compare(session, self.which, None, &new).await?;
        show(&compared, session.out)
    }
}

impl Diff {
    pub(super) async fn run(self, session: &mut Session) -> Result<Exit, CliError> {
        let (old, new) = (self.old.text(session).await?, self.new.text(session).await?);
        let (Some(old), Some(new)) = (old, new) else { return Ok(Exit::Error) };
        let compared = compare(session, self.which, Some(&old), &new).await?;
        show(&compared, session.out)
    }
}

/// Without an old policy, the verdicts on record are compared with.
async fn compare(session: &mut Session, which: Which, old: Option<&Text>, new: &Text) -> Result<Compared, CliError> {
    let mut compared = Compared::default();
    let (mut batch, mut bytes) = (Vec::new(), 0);
    let mut jobs = Jobs::new(which, session.out);
    while let Some(job) = jobs.next(session).await? {
        bytes += job.payload_json.len();
        batch.push(job);
        if bytes >= BATCH_BYTES || batch.len() >= BATCH_JOBS {
            judge(session, std::mem::take(&mut batch), old, new, &mut compared).await?;
            bytes = 0;
        }
    }
    judge(session, batch, old, new, &mut compared).await?;
    Ok(compared)
}

async fn judge(
    session: &Session,
    batch: Vec<v1::Job>,
    old: Option<&Text>,
    new: &Text,
    compared: &mut Compared,
) -> Result<(), CliError> {
    let recorded: Vec<Option<Verdict>> = batch.iter().map(|job| job.verdict.clone().map(verdict_from_wire)).collect();
    let names: Vec<(String, String)> = batch.iter().map(|job| (job.job_id.clone(), job.topic.clone())).collect();
    let subjects: Vec<v1::Subject> = batch.into_iter().map(subject_of).collect();
    let before = match old {
        None => recorded,
        Some(old) => simulate(session, old, subjects.clone()).await?.into_iter().map(Some).collect(),
    };
    let after = simulate(session, new, subjects).await?;
    compared.judged += names.len();
    for (((job_id, topic), old), new) in names.into_iter().zip(before).zip(after) {
        if old.as_ref().is_none_or(|old| differs(old, &new)) {
            let (old, new) = (old.as_ref().map(view::Verdict::from), view::Verdict::from(&new));
            compared.changed.push(Change { job_id, topic, old, new });
        }
    }
    Ok(())
}

/// A mere change of rule or reason is none.
fn differs(old: &Verdict, new: &Verdict) -> bool {
    old.decision != new.decision || old.constraints != new.constraints || old.approval != new.approval
}

async fn simulate(session: &Session, policy: &Text, subjects: Vec<v1::Subject>) -> Result<Vec<Verdict>, CliError> {
    let asked = subjects.len();
    let request = v1::SimulateRequest { policy_text: policy.text.clone(), subjects, file: policy.name.clone() };
    let response = session.kernel().simulate(request).await;
    let verdicts = session.answer(response)?.verdicts;
    if verdicts.len() == asked {
        return Ok(verdicts.into_iter().map(verdict_from_wire).collect());
    }
    Err(CliError::Server(format!("the server answered {} of {asked} questions", verdicts.len())))
}

/// Stored jobs with their payloads, newest first.
struct Jobs {
    page: std::vec::IntoIter<v1::Job>,
    /// None at the end of the list.
    cursor: Option<String>,
    left: usize,
    not_before_ms: Option<i64>,
}

impl Jobs {
    fn new(which: Which, out: Output) -> Self {
        let not_before_ms = which.since.map(|since| out.earlier(since));
        Self { page: Vec::new().into_iter(), cursor: Some(String::new()), left: which.limit, not_before_ms }
    }

    async fn next(&mut self, session: &mut Session) -> Result<Option<v1::Job>, CliError> {
        while self.left > 0 {
            let Some(listed) = self.page.next() else {
                if self.turn(session).await? {
                    continue;
                } else {
                    return Ok(None);
                };
            };
            if self.not_before_ms.is_some_and(|limit| listed.submitted_at_ms < limit) {
                return Ok(None);
            }
            match session.client.get_job(v1::GetJobRequest { job_id: listed.job_id }).await {
                // Retention may be faster than we are.
                Err(status) if status.code() == Code::NotFound => {}
                response => {
                    self.left -= 1;
                    return session.answer(response).map(Some);
                }
            }
        }
        Ok(None)
    }

    /// Reads the next page, if there is one.
    async fn turn(&mut self, session: &mut Session) -> Result<bool, CliError> {
        let Some(cursor) = self.cursor.take() else { return Ok(false) };
        let limit = u32::try_from(self.left).unwrap_or(PAGE).min(PAGE);
        let request = v1::ListJobsRequest { limit, cursor, ..v1::ListJobsRequest::default() };
        let response = session.client.list_jobs(request).await;
        let page = session.answer(response)?;
        self.cursor = (!page.next_cursor.is_empty()).then_some(page.next_cursor);
        self.page = page.jobs.into_iter();
        Ok(true)
    }
}

fn show(compared: &Compared, out: Output) -> Result<Exit, CliError> {
    if out.is_json() {
        out.json(compared)?;
        return Ok(Exit::Success);
    }
    if !compared.changed.is_empty() {
        out.line(&table(compared, out))?;
    }
    out.remark(&format!("{} of {} verdicts change", compared.changed.len(), compared.judged));
    Ok(Exit::Success)
}

fn table(compared: &Compared, out: Output) -> String {
    let said = |verdict: &view::Verdict| {
        let constraints = verdict.constraints.as_ref().map(|constraints| format!(" ({})", constraints.text()));
        format!("{} by {}{}", verdict.decision, verdict.rule, constraints.unwrap_or_default())
    };
    let row = |change: &Change| {
        vec![
            Field::text(&change.job_id),
            Field::text(&change.topic),
            Field::text(change.old.as_ref().map_or_else(|| "-".to_owned(), said)),
            Field::text(said(&change.new)),
            Field::clipped(&change.new.reason),
        ]
    };
    let rows: Vec<_> = compared.changed.iter().map(row).collect();
    out.table(&["job", "topic", "old", "new", "reason"], &rows)
}

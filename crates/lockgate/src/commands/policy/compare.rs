//! What another policy would have decided about jobs of the past.

use std::collections::BTreeMap;
use std::time::Duration;

use clap::Args;
use lockgate_api::view;
use lockgate_api::{verdict_from_wire, verdict_to_wire};
use lockgate_core::verdict::Verdict;
use lockgate_proto::v1;
use serde::Serialize;

use super::{PolicySource, Text};
use crate::args;
use crate::commands::constraints_text;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell};
use crate::session::CliSession;

const PAGE: u32 = 1_000;

/// Judge stored jobs by another policy and print the verdicts that would change
///
/// The verdicts on record are compared with those of the new policy. Velocity windows are as they are now on the server.
#[derive(Args, Debug)]
pub(super) struct Simulate {
    /// The new policy: a file, or a snapshot of the server
    #[arg(long, value_name = "POLICY")]
    policy: PolicySource,

    #[command(flatten)]
    which: JobSelection,
}

/// Judge stored jobs by two policies and print where they differ
#[derive(Args, Debug)]
pub(super) struct Diff {
    /// A policy: a file, or a snapshot of the server
    old: PolicySource,

    /// Another policy
    new: PolicySource,

    #[command(flatten)]
    which: JobSelection,
}

#[derive(Args, Clone, Copy, Debug)]
struct JobSelection {
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
    /// There are older jobs that `--limit` left out.
    cut: bool,
    changed: Vec<ChangedVerdict>,
}

#[derive(Debug, Serialize)]
struct ChangedVerdict {
    job_id: String,
    topic: String,
    /// Absent for a job that was never judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<view::Verdict>,
    new: view::Verdict,
}

impl Simulate {
    pub(super) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let Some(new) = self.policy.text(session).await? else { return Ok(Exit::Error) };
        let compared = compare(session, self.which, None, &new).await?;
        show(&compared, session.out)
    }
}

impl Diff {
    pub(super) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let (old, new) = (self.old.text(session).await?, self.new.text(session).await?);
        let (Some(old), Some(new)) = (old, new) else { return Ok(Exit::Error) };
        let compared = compare(session, self.which, Some(&old), &new).await?;
        show(&compared, session.out)
    }
}

/// Without an old policy, the verdicts on record are compared with.
async fn compare(
    session: &mut CliSession,
    which: JobSelection,
    old: Option<&Text>,
    new: &Text,
) -> Result<Compared, CliError> {
    let mut compared = Compared::default();
    let mut jobs = StoredJobs::new(which, session.out);
    while let Some(ids) = jobs.page(session).await? {
        let before = match old {
            None => BTreeMap::new(),
            Some(old) => simulate(session, old, &ids).await?.into_iter().map(|job| (job.id, job.verdict)).collect(),
        };
        let after = simulate(session, new, &ids).await?;
        compared.judged += after.len();
        for job in after {
            let old = match (old, before.get(&job.id)) {
                (None, _) => job.recorded,
                (Some(_), Some(verdict)) => Some(verdict.clone()),
                // It came or went between the two questions.
                (Some(_), None) => continue,
            };
            if old.as_ref().is_none_or(|old| differs(old, &job.verdict)) {
                let (old, new) = (old.as_ref().map(shown), shown(&job.verdict));
                compared.changed.push(ChangedVerdict { job_id: job.id, topic: job.topic, old, new });
            }
        }
    }
    compared.cut = jobs.cut;
    Ok(compared)
}

fn shown(verdict: &Verdict) -> view::Verdict {
    verdict_to_wire(verdict).into()
}

/// A mere change of rule or reason is none.
fn differs(old: &Verdict, new: &Verdict) -> bool {
    old.decision != new.decision || old.constraints != new.constraints || old.approval != new.approval
}

/// A stored job under another policy.
struct Judged {
    id: String,
    topic: String,
    recorded: Option<Verdict>,
    verdict: Verdict,
}

/// Retention may be faster than we are: jobs that are gone are left out.
async fn simulate(session: &CliSession, policy: &Text, ids: &[String]) -> Result<Vec<Judged>, CliError> {
    let request = v1::SimulateRequest {
        policy_text: policy.text.clone(),
        file: policy.name.clone(),
        job_ids: ids.to_vec(),
        subjects: Vec::new(),
    };
    let response = session.kernel().simulate(request).await;
    let judged = |job: v1::SimulatedJob| {
        let verdict = job.verdict.map(verdict_from_wire);
        let verdict = verdict.ok_or_else(|| CliError::Server("the server answered without a verdict".to_owned()))?;
        Ok(Judged { id: job.job_id, topic: job.topic, recorded: job.recorded.map(verdict_from_wire), verdict })
    };
    session.answer(response)?.jobs.into_iter().map(judged).collect()
}

/// Ids of stored jobs, newest first.
struct StoredJobs {
    /// None at the end of the list.
    cursor: Option<String>,
    left: usize,
    not_before_ms: Option<i64>,
    /// More were there than were asked for.
    cut: bool,
}

impl StoredJobs {
    fn new(which: JobSelection, out: Output) -> Self {
        let not_before_ms = which.since.map(|since| out.earlier(since));
        Self { cursor: Some(String::new()), left: which.limit, not_before_ms, cut: false }
    }

    /// The next page, which may be empty, if there is one. The last one tells whether there would be more.
    async fn page(&mut self, session: &mut CliSession) -> Result<Option<Vec<String>>, CliError> {
        let Some(cursor) = self.cursor.take().filter(|_| !self.cut) else { return Ok(None) };
        let limit = u32::try_from(self.left.saturating_add(1)).unwrap_or(PAGE).min(PAGE);
        let request = v1::ListJobsRequest { limit, cursor, ..v1::ListJobsRequest::default() };
        let response = session.client.list_jobs(request).await;
        let page = session.answer(response)?;
        let recent = |job: &v1::Job| self.not_before_ms.is_none_or(|limit| job.submitted_at_ms >= limit);
        let listed = page.jobs.len();
        let mut ids: Vec<String> = page.jobs.into_iter().take_while(recent).map(|job| job.job_id).collect();
        let reached_the_end = ids.len() < listed || page.next_cursor.is_empty();
        self.cursor = (!reached_the_end).then_some(page.next_cursor);
        self.cut = ids.len() > self.left;
        ids.truncate(self.left);
        self.left -= ids.len();
        Ok(Some(ids))
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
    if compared.cut {
        out.remark("older jobs were left out; judge them too with a higher --limit");
    }
    Ok(Exit::Success)
}

fn table(compared: &Compared, out: Output) -> String {
    let said = |verdict: &view::Verdict| {
        let constraints = verdict.constraints.as_ref().map(|constraints| format!(" ({})", constraints_text(constraints)));
        format!("{} by {}{}", verdict.decision, verdict.rule, constraints.unwrap_or_default())
    };
    let row = |change: &ChangedVerdict| {
        vec![
            TableCell::text(&change.job_id),
            TableCell::text(&change.topic),
            TableCell::text(change.old.as_ref().map_or_else(|| "-".to_owned(), said)),
            TableCell::text(said(&change.new)),
            TableCell::clipped(&change.new.reason),
        ]
    };
    let rows: Vec<_> = compared.changed.iter().map(row).collect();
    out.table(&["job", "topic", "old", "new", "reason"], &rows)
}

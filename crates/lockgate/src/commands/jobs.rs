//! `lockgate jobs`: a page of jobs.

use clap::Args;
use lockgate_api::view;
use lockgate_core::job::JobState;
use lockgate_proto::v1;

use super::wire_state;
use crate::args;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell};
use crate::session::CliSession;

/// List jobs, newest first
#[derive(Args, Debug)]
pub(crate) struct JobsArgs {
    /// Only jobs in this state, such as RUNNING
    #[arg(long)]
    state: Option<JobState>,

    /// Only jobs of this topic
    #[arg(long, value_parser = args::name)]
    topic: Option<String>,

    /// Only jobs with this label, such as safety_bypassed=true of those that ran without a verdict; can be given many times
    #[arg(long = "label", value_parser = args::pair, value_name = "NAME=VALUE")]
    labels: Vec<(String, String)>,

    /// Only children of this job
    #[arg(long, value_parser = args::name, value_name = "JOB")]
    parent: Option<String>,

    /// Only jobs of this trace
    #[arg(long, value_parser = args::name, value_name = "ID")]
    trace: Option<String>,

    /// Jobs on a page
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,

    /// Where the previous page ended
    #[arg(long, default_value = "", hide_default_value = true)]
    cursor: String,
}

impl JobsArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        let request = v1::ListJobsRequest {
            state: wire_state(self.state).into(),
            topic: self.topic.unwrap_or_default(),
            labels: self.labels.into_iter().collect(),
            limit: self.limit,
            cursor: self.cursor,
            parent_job_id: self.parent.unwrap_or_default(),
            trace_id: self.trace.unwrap_or_default(),
        };
        let response = session.client.list_jobs(request).await;
        let page = view::Jobs::from(session.answer(response)?);
        let out = session.out;
        if out.is_json() {
            out.json(&page)?;
            return Ok(Exit::Success);
        }
        if page.jobs.is_empty() && page.next_cursor.is_none() {
            out.remark("no jobs");
        } else {
            out.line(&table(&page, out))?;
        }
        if let Some(cursor) = page.next_cursor {
            out.remark(&format!("more with --cursor {cursor}"));
        }
        Ok(Exit::Success)
    }
}

pub(super) fn table(page: &view::Jobs, out: Output) -> String {
    let row = |job: &view::Job| {
        vec![
            TableCell::text(&job.job_id),
            TableCell::state(&job.state),
            TableCell::text(&job.topic),
            TableCell::text(&job.priority),
            TableCell::number(&job.attempt),
            out.relative_or_dash(Some(job.submitted_at)),
            out.relative_or_dash(job.ended_at),
            TableCell::clipped(job.last_error.as_ref().map_or("", |error| &error.message)),
        ]
    };
    let rows: Vec<_> = page.jobs.iter().map(row).collect();
    out.table(&["job", "state", "topic", "priority", "attempt", "submitted", "ended", "last error"], &rows)
}

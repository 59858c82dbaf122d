//! Reads the job list of a load repeatedly, but only pages that may have changed.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_proto::v1;

use super::report::SeenJob;
use crate::error::CliError;
use crate::follow::repeat;
use crate::session::CliSession;

const PAGE: u32 = 1_000;

/// The list of a load whose jobs have all been submitted, newest first. A job that has ended stays as it is, so that a
/// page is read again only for those that had not.
pub(super) struct JobPages {
    filter: v1::ListJobsRequest,
    jobs: usize,
    open: Vec<OpenPage>,
    /// The cursor of the first unread page.
    next: Option<String>,
}

/// A part of the list with jobs that had not ended.
struct OpenPage {
    cursor: String,
    live: BTreeSet<String>,
}

impl JobPages {
    /// The list of the `jobs` jobs with this label.
    pub(super) fn new(name: &str, value: &str, jobs: u32) -> Self {
        let labels = [(name.to_owned(), value.to_owned())].into();
        let filter = v1::ListJobsRequest { labels, limit: PAGE, ..v1::ListJobsRequest::default() };
        Self { filter, jobs: jobs as usize, open: Vec::new(), next: Some(String::new()) }
    }

    /// Reads the pages that may have changed into `seen`.
    pub(super) async fn look(
        &mut self,
        session: &mut CliSession,
        seen: &mut BTreeMap<String, SeenJob>,
    ) -> Result<(), CliError> {
        for open in std::mem::take(&mut self.open) {
            self.read_again(session, open, seen).await?;
        }
        while let Some(cursor) = self.next.take() {
            let page = self.read(session, &cursor).await?;
            self.keep_live(cursor, page.jobs.iter().filter(|job| job.ended_at_ms.is_none()));
            note(&page.jobs, seen);
            // Older jobs are not of this load.
            if seen.len() < self.jobs && !page.next_cursor.is_empty() {
                self.next = Some(page.next_cursor);
            }
        }
        Ok(())
    }

    /// Newer jobs of others can move what was on one page to the next, so this goes on until all its jobs were met.
    async fn read_again(
        &mut self,
        session: &mut CliSession,
        open: OpenPage,
        seen: &mut BTreeMap<String, SeenJob>,
    ) -> Result<(), CliError> {
        let OpenPage { mut cursor, live: mut wanted } = open;
        while !wanted.is_empty() {
            let page = self.read(session, &cursor).await?;
            let met: Vec<&v1::Job> = page.jobs.iter().filter(|job| wanted.remove(&job.job_id)).collect();
            self.keep_live(cursor, met.into_iter().filter(|job| job.ended_at_ms.is_none()));
            note(&page.jobs, seen);
            if page.next_cursor.is_empty() {
                break;
            }
            cursor = page.next_cursor;
        }
        Ok(())
    }

    async fn read(&self, session: &mut CliSession, cursor: &str) -> Result<v1::ListJobsResponse, CliError> {
        let request = v1::ListJobsRequest { cursor: cursor.to_owned(), ..self.filter.clone() };
        let page = repeat(session, async |session| {
            let response = session.client.list_jobs(request.clone()).await;
            session.answer(response)
        });
        page.await
    }

    fn keep_live<'a>(&mut self, cursor: String, live: impl Iterator<Item = &'a v1::Job>) {
        let live: BTreeSet<String> = live.map(|job| job.job_id.clone()).collect();
        if !live.is_empty() {
            self.open.push(OpenPage { cursor, live });
        }
    }
}

fn note(jobs: &[v1::Job], seen: &mut BTreeMap<String, SeenJob>) {
    seen.extend(jobs.iter().filter_map(|job| Some((job.job_id.clone(), SeenJob::of(job)?))));
}

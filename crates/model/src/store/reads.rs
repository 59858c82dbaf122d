//! Reads: filters over all rows, sorted. Slow and plain on purpose.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::Arc;

use lockgate_core::ids::{JobId, JobSeq, SessionId};
use lockgate_core::job::{DeadLetter, Duty, Job, JobState};
use lockgate_core::lane::{LaneKey, ReadyKey};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::time::Timestamp;

use super::data::{Data, JobRow};
use lockgate_ports::store::{
    ChildJob, ChildQuery, Cursor, DeadLetterQuery, JobQuery, KeptLine, Kin, LOG_LINES_MAX, Listing, LogLine, StoreError,
    has_labels,
};

impl Data {
    pub(super) fn list(&self, query: &JobQuery) -> Listing<Job> {
        let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
        let fits = |row: &&JobRow| row.job.seq.0 < before && wanted(query, &row.job) && self.is_readable(row);
        let rows = self.jobs.values().rev().filter(fits);
        let items: Vec<Job> = rows.take(query.limit.max(1)).map(|row| without_payload(&row.job)).collect();
        let full = items.len() == query.limit.max(1);
        let next = items.last().filter(|_| full).map(|job| Cursor(job.seq.0));
        Listing { items, next }
    }

    pub(super) fn dead_letters(&self, query: &DeadLetterQuery) -> Listing<DeadLetter> {
        let before = query.cursor.map_or(i64::MAX, |cursor| cursor.0);
        let letters = self.letters.range(..before).rev().filter(|(_, (_, letter))| {
            query.tenant.as_ref().is_none_or(|tenant| *tenant == letter.tenant)
                && query.topic.as_ref().is_none_or(|topic| *topic == letter.topic)
                && query.priority.is_none_or(|priority| priority == letter.priority)
                && query.reason.is_none_or(|reason| reason == letter.reason)
                && has_labels(&letter.labels, &query.labels)
        });
        let page: Vec<(i64, &DeadLetter)> = letters.map(|(n, (_, letter))| (*n, letter)).take(query.limit.max(1)).collect();
        let full = page.len() == query.limit.max(1);
        let next = page.last().filter(|_| full).map(|(n, _)| Cursor(*n));
        Listing { items: page.into_iter().map(|(_, letter)| letter.clone()).collect(), next }
    }

    pub(super) fn ready(&self, lane: &LaneKey, after: Option<ReadyKey>, now: Timestamp, limit: usize) -> Vec<Job> {
        let later = |job: &Job| after.is_none_or(|after| job.ready_key() > after);
        in_ready_order(self.select(|row| scheduled(row, now) && row.job.lane() == *lane && later(&row.job)), limit)
    }

    pub(super) fn ready_lanes(&self, now: Timestamp) -> Vec<(LaneKey, u64)> {
        let mut lanes = BTreeMap::new();
        for row in self.jobs.values().filter(|row| scheduled(row, now)) {
            *lanes.entry(row.job.lane()).or_insert(0) += 1;
        }
        lanes.into_iter().collect()
    }

    pub(super) fn due(&self, after: ReadyKey, now: Timestamp, limit: usize) -> Vec<Job> {
        let jobs = self.select(|row| row.delayed && scheduled(row, now) && row.job.ready_key() > after);
        in_ready_order(jobs, limit)
    }

    pub(super) fn pending(&self, after: ReadyKey, now: Timestamp, limit: usize) -> Vec<Job> {
        let waits = |row: &JobRow| row.job.state() == JobState::Pending && row.job.life.due_at <= now;
        in_ready_order(self.select(|row| waits(row) && row.job.ready_key() > after), limit)
    }

    pub(super) fn expired(&self, after: ReadyKey, now: Timestamp, limit: usize) -> Vec<Job> {
        let mut jobs = self.select(|row| row.job.deadline_key().is_some_and(|key| key.due_at <= now && key > after));
        jobs.sort_by_key(Job::deadline_key);
        jobs.truncate(limit);
        jobs
    }

    pub(super) fn owing(&self, duty: Duty, after: JobSeq, limit: usize) -> Vec<Job> {
        let later = self.jobs.range((Excluded(after), Unbounded));
        later
            .filter(|(_, row)| row.job.owes(duty) && self.is_readable(row))
            .take(limit)
            .map(|(_, row)| row.job.clone())
            .collect()
    }

    pub(super) fn family(&self, lives: &[(JobId, u32)]) -> Vec<Kin> {
        let of = |(parent, life): &(JobId, u32)| {
            let children: Vec<&JobRow> = self.jobs.values().filter(|row| is_child(row, parent, Some(*life))).collect();
            let live: Vec<&&JobRow> = children.iter().filter(|row| !row.job.state().is_terminal()).collect();
            let latest = live.last().map(|row| row.job.seq);
            Kin { total: children.len() as u64, live: live.len() as u64, latest }
        };
        lives.iter().map(of).collect()
    }

    pub(super) fn under_way(&self, lives: &[(JobId, u32)]) -> Vec<Option<JobSeq>> {
        let latest = |(parent, life): &(JobId, u32)| {
            let live = |row: &&JobRow| is_child(row, parent, Some(*life)) && !row.job.state().is_terminal();
            self.jobs.values().rev().find(live).map(|row| row.job.seq)
        };
        lives.iter().map(latest).collect()
    }

    pub(super) fn children(&self, query: &ChildQuery) -> Result<Listing<ChildJob>, StoreError> {
        let later = self.jobs.range((Excluded(query.after), Unbounded)).map(|(_, row)| row);
        let theirs = later.filter(|row| is_child(row, &query.parent, Some(query.life)));
        let (mut items, mut bytes, mut full) = (Vec::<ChildJob>::new(), 0, false);
        for row in theirs {
            self.decode(std::slice::from_ref(&row.job.request.job_id))?;
            let result = row.result.clone().filter(|_| row.job.result_is_out());
            let child = ChildJob { job: without_payload(&row.job), result };
            bytes += child.bytes();
            full = items.len() == query.limit || !items.is_empty() && bytes > query.bytes;
            if full {
                break;
            }
            items.push(child);
        }
        let next = items.last().filter(|_| full).map(|child| Cursor(child.job.seq.0));
        Ok(Listing { items, next })
    }

    pub(super) fn live_children(&self, parent: &JobId, life: u32, after: JobSeq, limit: usize) -> Vec<(JobSeq, JobId)> {
        let later = self.jobs.range((Excluded(after), Unbounded)).map(|(_, row)| row);
        let live = later.filter(|row| is_child(row, parent, Some(life)) && !row.job.state().is_terminal());
        live.take(limit).map(|row| (row.job.seq, row.job.request.job_id.clone())).collect()
    }

    pub(super) fn held(&self, session: &SessionId) -> Vec<Job> {
        self.select(|row| row.held_by(session))
    }

    pub(super) fn bound(&self, sessions: &[SessionId]) -> Vec<(SessionId, JobId)> {
        let of = |session: &SessionId| {
            let held = self.jobs.values().filter(|row| row.held_by(session));
            held.map(|row| (session.clone(), row.job.request.job_id.clone())).collect::<Vec<_>>()
        };
        sessions.iter().flat_map(of).collect()
    }

    pub(super) fn append_logs(&mut self, lines: Vec<LogLine>) {
        for line in lines {
            let Some(seq) = self.ids.get(&line.job_id) else { continue };
            let kept = self.logs.entry(*seq).or_default();
            let no = kept.back().map_or(0, |last| last.no) + 1;
            kept.push_back(KeptLine { no, line });
            if kept.len() > LOG_LINES_MAX {
                kept.pop_front();
            }
        }
    }

    pub(super) fn logs(&self, id: &JobId, after: u64, limit: usize) -> Vec<KeptLine> {
        let lines = self.ids.get(id).and_then(|seq| self.logs.get(seq));
        let later: Vec<_> = lines.into_iter().flatten().filter(|kept| kept.no > after).cloned().collect();
        later[later.len().saturating_sub(limit)..].to_vec()
    }

    /// Jobs in commit order, without those that cannot be decoded.
    fn select(&self, wanted: impl Fn(&JobRow) -> bool) -> Vec<Job> {
        self.jobs.values().filter(|row| wanted(row) && self.is_readable(row)).map(|row| row.job.clone()).collect()
    }
}

fn scheduled(row: &JobRow, now: Timestamp) -> bool {
    row.job.state() == JobState::Scheduled && row.job.life.due_at <= now
}

fn is_child(row: &JobRow, parent: &JobId, life: Option<u32>) -> bool {
    let of = row.job.request.child_of.as_ref().filter(|of| of.parent == *parent);
    of.is_some_and(|of| life.is_none_or(|life| life == of.life))
}

fn in_ready_order(mut jobs: Vec<Job>, limit: usize) -> Vec<Job> {
    jobs.sort_by_key(Job::ready_key);
    jobs.truncate(limit);
    jobs
}

fn wanted(query: &JobQuery, job: &Job) -> bool {
    let request = &job.request;
    query.tenant.as_ref().is_none_or(|tenant| *tenant == request.tenant)
        && query.topic.as_ref().is_none_or(|topic| *topic == request.topic)
        && query.state.is_none_or(|state| state == job.state())
        && query.parent.as_ref().is_none_or(|parent| request.child_of.as_ref().is_some_and(|of| of.parent == *parent))
        && query.fits(job)
}

pub(super) fn without_payload(job: &Job) -> Job {
    let request = JobRequest { payload: Json::null(), ..(*job.request).clone() };
    Job { request: Arc::new(request), ..job.clone() }
}

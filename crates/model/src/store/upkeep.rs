//! Retention and counts.

use std::time::Duration;

use lockgate_core::ids::JobSeq;
use lockgate_core::lane::Priority;
use lockgate_core::time::Timestamp;

use super::data::{Data, JobRow};
use lockgate_ports::store::{CLOSED_LIFE, Totals};

impl Data {
    pub(super) fn prune(&mut self, keep: Duration, limit: usize, now: Timestamp) -> u64 {
        let may_go = self.jobs.values().filter(|row| self.job_may_go(row));
        let ended = may_go.filter_map(|row| Some((row.job.life.ended_at?, row.job.seq)));
        let mut old: Vec<(Timestamp, JobSeq)> = ended.filter(|(at, _)| *at < now - keep).collect();
        old.sort_unstable();
        old.truncate(limit);
        for (_, seq) in &old {
            self.forget(*seq);
        }
        self.keys.retain(|_, key| key.free_at > now);
        self.memos.retain(|_, (_, until)| *until > now);
        self.prune_closed(now);
        old.len() as u64 + self.prune_runs(now - keep, limit, now) + self.prune_slots(now - keep, limit)
    }

    /// A job of a run stays until that is over, and a child until its parent has ended.
    pub(super) fn job_may_go(&self, row: &JobRow) -> bool {
        let request = &row.job.request;
        let parent = request.child_of.as_ref().and_then(|of| self.row(&of.parent));
        request.run.as_ref().is_none_or(|part| !self.is_live(&part.run))
            && parent.is_none_or(|parent| parent.job.state().is_terminal())
    }

    pub(super) fn forget(&mut self, seq: JobSeq) {
        if let Some(row) = self.jobs.remove(&seq) {
            self.ids.remove(&row.job.request.job_id);
        }
        self.logs.remove(&seq);
        self.keys.retain(|_, key| key.seq != seq);
        self.memos.retain(|_, (of, _)| *of != seq);
        self.letters.retain(|_, (of, _)| *of != seq);
    }

    fn prune_closed(&mut self, now: Timestamp) {
        let past_life = |closed_at: Option<Timestamp>| closed_at.is_some_and(|at| at + CLOSED_LIFE <= now);
        let old = self.sessions.iter().filter(|(session, row)| past_life(row.closed_at) && !self.holds_jobs(session));
        for session in old.map(|(session, _)| session.clone()).collect::<Vec<_>>() {
            self.sessions.remove(&session);
        }
        let sessions = &self.sessions;
        self.edges.retain(|edge, row| !past_life(row.closed_at) || sessions.values().any(|session| session.edge == *edge));
    }

    pub(super) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for row in self.jobs.values() {
            if row.job.state().is_terminal() {
                totals.ended += 1;
            } else {
                totals.live[index(row.job.request.priority())] += 1;
            }
        }
        for (_, letter) in self.letters.values() {
            totals.dead_letters[index(letter.priority)] += 1;
        }
        totals
    }
}

fn index(priority: Priority) -> usize {
    priority as usize
}

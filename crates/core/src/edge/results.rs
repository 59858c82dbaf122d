//! Results that workers report: whose they are, and when each is acknowledged.

use std::sync::Arc;

use super::{Acknowledged, EdgeEffect, EdgeState, Moment, ResultReport, ToWorker};
use crate::ids::{AttemptToken, SessionId};
use crate::job::{Job, Outcome};
use crate::time::Timestamp;

/// The job of a result, and when its attempt began if that is not stored yet.
pub type ReportedJob = (Arc<Job>, Option<Timestamp>);

/// Results of one message, from their arrival to their acknowledgement.
#[derive(Debug)]
pub(super) struct ReportedBatch {
    number: u64,
    /// What each came to. None while they are being committed.
    acks: Option<Vec<(AttemptToken, Acknowledged)>>,
}

impl EdgeState {
    /// Results came on the stream of a session. The number of their batch, to be acknowledged or given up under; none if the session is
    /// not here under this epoch.
    pub fn on_results(&mut self, id: &SessionId, epoch: u64) -> Option<u64> {
        let session = self.sessions.get_mut(id).filter(|session| session.epoch == epoch)?;
        session.last_batch += 1;
        session.reported.push_back(ReportedBatch { number: session.last_batch, acks: None });
        Some(session.last_batch)
    }

    /// The jobs of results, as far as they are known here. Learns from those that ran to an end how long attempts of their topics run.
    pub fn reported(
        &mut self,
        id: &SessionId,
        epoch: u64,
        results: &[ResultReport],
        now: Moment,
    ) -> Vec<Option<ReportedJob>> {
        let Some(session) = self.sessions.get(id) else { return vec![None; results.len()] };
        for result in results.iter().filter(|result| ran(&result.outcome)) {
            let held = session.held.get(&result.token);
            if let Some((held, since)) = held.and_then(|held| Some((held, held.at_work_since()?))) {
                self.pace.note(&held.job.request.topic, now.since(since));
            }
        }
        let held = |result: &ResultReport| {
            let held = session.held.get(&result.token).filter(|held| held.is_stored() && session.epoch == epoch)?;
            Some((held.job.clone(), held.started()))
        };
        results.iter().map(held).collect()
    }

    /// Results were committed, or no longer count: their attempts are over, and their worker has nothing of them. The limits of
    /// `superseded` were left to this moment by the commits that ended them.
    pub fn on_committed(&mut self, id: &SessionId, over: &[AttemptToken], superseded: Vec<AttemptToken>) -> Vec<EdgeEffect> {
        let mut out = Vec::new();
        let mut limits = self.free_places(id, over, &mut out);
        limits.extend(superseded);
        if !limits.is_empty() {
            out.push(EdgeEffect::FreeLimits(limits));
        }
        out
    }

    /// What the results of a batch came to; nothing of those that are not decided. Acknowledged first in, first out: those of a later
    /// batch wait for the earlier ones.
    pub fn on_decided(
        &mut self,
        id: &SessionId,
        epoch: u64,
        batch: u64,
        acks: Vec<(AttemptToken, Acknowledged)>,
    ) -> Vec<EdgeEffect> {
        self.change(id, Some(epoch), |session, out| {
            if let Some(waiting) = session.reported.iter_mut().find(|waiting| waiting.number == batch) {
                waiting.acks = Some(acks);
            }
            while let Some(acks) = session.reported.front_mut().and_then(|first| first.acks.take()) {
                session.reported.pop_front();
                if !acks.is_empty() {
                    session.tell(ToWorker::Acks(acks), out);
                }
            }
        })
    }
}

/// Its handler came to an end by itself.
fn ran(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Succeeded { .. } | Outcome::FailedRetryable { .. } | Outcome::FailedFatal { .. })
}

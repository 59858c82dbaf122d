//! Restamping: a clock that was ahead stamped the job, and the right time is known again. Times computed from such a stamp
//! move back.

use std::time::Duration;

use super::{Env, EventKind, Illegal, Job, JobState, Transition};
use crate::clock_guard::stamped_ahead;
use crate::time::Timestamp;

impl Job {
    /// Whether a stamp ahead of the right time may have entered one of the job's times. Also true for delays that a client
    /// asked for; the stamp of the latest event tells the two apart.
    pub fn may_be_ahead(&self, right: Timestamp) -> bool {
        let stamps = [Some(self.life.began_at), self.waits_until(), self.life.approval.as_ref().map(|asked| asked.asked_at)];
        stamps.into_iter().flatten().any(|stamp| stamped_ahead(stamp, right).is_some())
    }

    /// `changed_at` is the stamp of the job's latest event, `right` the time by every clock that was asked. Each time moves
    /// back by as much as the stamp that it was computed from is ahead. The event of this decision then is the latest, so
    /// that a second pass moves nothing. The times of a held attempt stay: a timeout that fires late delays no waiting job.
    pub(super) fn restamped(&self, changed_at: Timestamp, right: Timestamp, env: &Env<'_>) -> Result<Transition, Illegal> {
        self.live()?;
        let changed = stamped_ahead(changed_at, right).ok_or(Illegal::NotDue)?;
        let mut transition = Transition::from(self);
        let life = &mut transition.job.life;
        if let Some(born) = stamped_ahead(life.began_at, right) {
            life.began_at = right;
            life.submitted_at = life.submitted_at.min(right);
            // The timeout of a held attempt stays, so its deadline must stay too: a timeout behind the deadline would read
            // as the end of the job's time and cost the job its remaining retries.
            if !life.state.is_held() {
                life.deadline_at = life.deadline_at.map(|at| at - born);
            }
        }
        // A due time before the latest event was not computed from that event's stamp.
        if !life.state.is_held() && life.due_at >= changed_at {
            // A `not_before` that the client named was computed from no stamp.
            let named = self.request.not_before.filter(|at| *at <= life.due_at);
            life.due_at = named.into_iter().chain([life.due_at - changed]).max().unwrap_or(right);
        }
        for stamp in
            life.approval.iter_mut().flat_map(|asked| [Some(&mut asked.asked_at), asked.granted_at.as_mut()]).flatten()
        {
            *stamp = (*stamp).min(right);
        }
        if let Some(barrier) = life.family.as_mut().and_then(|family| family.waits.as_mut()) {
            let waited = stamped_ahead(barrier.since, right).unwrap_or(Duration::ZERO);
            (barrier.since, barrier.until) = (barrier.since - waited, barrier.until - waited);
            if life.state == JobState::Pending {
                life.due_at = barrier.until;
            }
        }
        let (seconds, until) = (changed.as_secs(), transition.job.waits_until());
        transition.event(EventKind::Restamped, env.now, |event| {
            event.until = until.filter(|until| *until > env.now);
            event.message = Some(format!("a clock was {seconds} s ahead when it was stamped").into());
        });
        Ok(transition)
    }
}

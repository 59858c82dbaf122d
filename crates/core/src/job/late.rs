//! Late results: an attempt succeeded after its job had been cancelled, had timed out or had been given to another worker.
//!
//! The job's state does not change (J-3). But the rollback of a run must undo that work too, so a job of a run
//! remembers its revoked attempts and records the success of one of them.

use std::sync::Arc;

use super::{Env, EventKind, Evidence, Illegal, Job, JobState, Leaving, LostAttempt, OutputCheck, OutputStage, Transition};
use crate::ids::AttemptToken;
use crate::limits::{LETTING_GO, SCAN_PATIENCE};
use crate::output::{OutputDecision, OutputStep, OutputVerdict};
use crate::request::Json;
use crate::time::Timestamp;

/// How many revoked attempts a job remembers. The oldest is dropped: its worker has had time for several attempts to report.
pub(super) const TAKEN_MAX: usize = 8;

impl Job {
    fn was_taken(&self, token: &AttemptToken) -> Option<&LostAttempt> {
        self.life.taken.iter().find(|taken| taken.token == *token)
    }

    /// For a job of a run: whether the attempt was revoked. No report of a revoked attempt ends or moves the job.
    pub fn is_taken(&self, token: &AttemptToken) -> bool {
        self.was_taken(token).is_some()
    }

    /// For a job of a run: the sessions that may still be working on revoked attempts.
    pub fn leaving(&self) -> impl Iterator<Item = &Leaving> {
        self.life.taken.iter().filter_map(|taken| taken.leaving.as_ref())
    }

    /// a revoked attempt is certainly over. A run may be undone only once all its revoked attempts are.
    pub(super) fn let_go(&self, token: &AttemptToken) -> Result<Transition, Illegal> {
        // The scan still holds the attempt's late result: the work was done and must be undone too, so the run keeps
        // waiting.
        let is_held = self.late_result_is_held() && self.life.late.as_ref().is_some_and(|late| late.token == *token);
        self.was_taken(token).filter(|taken| taken.leaving.is_some() && !is_held).ok_or(Illegal::Superseded)?;
        let mut transition = Transition::from(self);
        transition.note_left(token);
        Ok(transition)
    }

    /// A revoked attempt did the work, no other attempt will, and the scan no longer holds the result: the rollback may see
    /// it.
    pub fn is_done_late(&self) -> bool {
        self.has_late_result() && !self.late_result_is_held()
    }

    /// The scan holds the late result, so the run does not see it yet.
    pub(super) fn late_result_is_held(&self) -> bool {
        self.has_late_result() && self.output_stage() == Some(OutputStage::Held)
    }

    /// A late result counts only once the job is over: before that, the current attempt may still succeed.
    pub(super) fn has_late_result(&self) -> bool {
        self.life.late.is_some() && self.life.state.is_terminal() && !self.is_done()
    }

    /// Whether this attempt did the job's work.
    pub fn was_done_by(&self, token: &AttemptToken) -> bool {
        self.is_done() && self.life.attempt.token == *token
    }

    fn is_done(&self) -> bool {
        matches!(self.life.state, JobState::Succeeded | JobState::OutputQuarantined) || self.in_output_check()
    }

    /// records the success of a revoked attempt, once; the job does not end by it.
    pub(super) fn done_late(
        &self,
        token: &AttemptToken,
        result: Json,
        step: OutputStep,
        env: &Env<'_>,
    ) -> Result<Transition, Illegal> {
        let taken = self.was_taken(token).filter(|_| self.life.late.is_none() && !self.is_done());
        let Some(no) = taken.map(|taken| taken.no) else { return self.let_go(token) };
        let mut transition = Transition::from(self);
        transition.job.life.late = Some(LostAttempt { no, token: token.clone(), leaving: None });
        transition.event(EventKind::DoneLate, env.now, |event| {
            event.late_of = Some(no).filter(|no| *no != event.attempt);
            event.message = Some(format!("attempt {no} was done after it had been taken from its worker").into());
        });
        let max = self.constraints().max_output_bytes;
        let fits = max.is_none_or(|max| result.as_str().len() as u64 <= max);
        if self.life.state.is_terminal() && fits {
            transition.keep_late(no, result, step, env);
        }
        // the run sees a held result only after the scan. Until then it must not undo anything that this work may have
        // used.
        if transition.job.late_result_is_held() {
            transition.wait_for_scan(token, env.now);
        } else {
            transition.note_left(token);
        }
        Ok(transition)
    }
}

impl Transition {
    /// Remembers the current attempt while it is revoked: its worker may still finish it, or go on working for a while.
    pub(super) fn remember_taken(&mut self, now: Timestamp) {
        if self.job.request.run.is_none() {
            return;
        }
        // With this evidence the attempt is over: the worker no longer has it, or its session is closed.
        let over = matches!(self.evidence, Evidence::Attached { .. } | Evidence::Closed { .. });
        let life = &mut self.job.life;
        let binding = life.attempt.binding.as_ref().filter(|_| !over);
        let leaving = binding.map(|binding| Leaving {
            session: binding.session.clone(),
            until: binding.timeout_at.max(now) + LETTING_GO,
            scan: false,
        });
        if life.taken.len() == TAKEN_MAX {
            life.taken.remove(0);
        }
        life.taken.push(LostAttempt { no: life.attempt.no, token: life.attempt.token.clone(), leaving });
    }

    /// The attempt has reported, so the wait for its worker becomes the wait for the scan of its result. If the wait for the
    /// worker has expired, the run may be undoing already: it sees this work after the scan and undoes it then.
    fn wait_for_scan(&mut self, token: &AttemptToken, now: Timestamp) {
        let taken = self.job.life.taken.iter_mut().find(|taken| taken.token == *token);
        if let Some(leaving) = taken.and_then(|taken| taken.leaving.as_mut()).filter(|leaving| leaving.until > now) {
            (leaving.scan, leaving.until) = (true, now + SCAN_PATIENCE);
        }
    }

    /// Records that no work of this attempt is under way any more.
    pub(super) fn note_left(&mut self, token: &AttemptToken) {
        if let Some(taken) = self.job.life.taken.iter_mut().find(|taken| taken.token == *token) {
            taken.leaving = None;
        }
    }

    /// The scan of a late result ended, with any verdict: its run may see the work now.
    pub(super) fn late_came_out(&mut self) {
        if let Some(late) = self.job.life.late.clone() {
            self.note_left(&late.token);
        }
    }

    /// Keeps the late result, subject to the output policy like every result: the compensation may read it.
    pub(super) fn keep_late(&mut self, attempt: u32, result: Json, step: OutputStep, env: &Env<'_>) {
        let check = |stage| Some(OutputCheck { attempt, stage, verdict: None, released_by: None });
        self.result = Some(result.clone());
        self.job.life.output = match step {
            OutputStep::Pass => None,
            OutputStep::Scan { hold: false } => check(OutputStage::Scanning),
            OutputStep::Scan { hold: true } => check(OutputStage::Held),
            OutputStep::Unchecked { why } => {
                self.event(EventKind::OutputUnchecked, env.now, |event| event.message = Some(why));
                check(OutputStage::Unchecked)
            }
            OutputStep::Decided(verdict) => {
                self.late_decided(&verdict, result, env);
                return;
            }
        };
    }

    /// A late result that policy quarantines is not kept: a job that did not succeed has no result that a person could
    /// release.
    pub(super) fn late_decided(&mut self, verdict: &Arc<OutputVerdict>, result: Json, env: &Env<'_>) {
        let attempt = self.job.life.late.as_ref().map_or(0, |late| late.no);
        let kept = match (verdict.decision, &verdict.redacted) {
            (OutputDecision::Allow, _) => result,
            (OutputDecision::Redact, Some(redacted)) => {
                self.output_event(EventKind::OutputRedacted, verdict, None, env.now);
                redacted.clone()
            }
            _ => {
                self.output_event(EventKind::OutputQuarantined, verdict, None, env.now);
                Json::null()
            }
        };
        self.result = Some(kept);
        let verdict = Some(Arc::new(OutputVerdict { redacted: None, ..(**verdict).clone() }));
        self.job.life.output = Some(OutputCheck { attempt, stage: OutputStage::Checked, verdict, released_by: None });
    }
}

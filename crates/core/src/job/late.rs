//! Work that was done although it no longer counted: its job was cancelled, ran out of time or was given to another worker.
//!
//! The job stays what it is (J-3). But the rollback of a run has to know of it, so jobs of runs remember which
//! attempts were taken away, and take down the success of one of them.

use std::sync::Arc;

use super::{Env, EventKind, Evidence, Illegal, Job, JobState, Leaving, LostAttempt, OutputCheck, OutputStage, Transition};
use crate::ids::AttemptToken;
use crate::limits::{LETTING_GO, SCAN_PATIENCE};
use crate::output::{OutputDecision, OutputStep, OutputVerdict};
use crate::request::Json;
use crate::time::Timestamp;

/// Attempts that are remembered after they were taken away, the latest ones. Those before had their time.
pub(super) const TAKEN_MAX: usize = 8;

impl Job {
    fn was_taken(&self, token: &AttemptToken) -> Option<&LostAttempt> {
        self.life.taken.iter().find(|taken| taken.token == *token)
    }

    /// Of a job of a run: the attempt was taken from its worker, and no report of it ends or moves the job.
    pub fn is_taken(&self, token: &AttemptToken) -> bool {
        self.was_taken(token).is_some()
    }

    /// Of a job of a run: who may still be at work on attempts that no longer count.
    pub fn leaving(&self) -> impl Iterator<Item = &Leaving> {
        self.life.taken.iter().filter_map(|taken| taken.leaving.as_ref())
    }

    /// an attempt that was taken from its worker is surely over. What its run did may be undone once all of them are.
    pub(super) fn let_go(&self, token: &AttemptToken) -> Result<Transition, Illegal> {
        // While the scan holds its late result, its run goes on waiting: the work was done, and its undo is still to come.
        let is_held = self.late_result_is_held() && self.life.late.as_ref().is_some_and(|late| late.token == *token);
        self.was_taken(token).filter(|taken| taken.leaving.is_some() && !is_held).ok_or(Illegal::Superseded)?;
        let mut transition = Transition::from(self);
        transition.note_left(token);
        Ok(transition)
    }

    /// Its work was done by an attempt that no longer counted, nothing else can come of it, and the rollback may know.
    pub fn is_done_late(&self) -> bool {
        self.has_late_result() && !self.late_result_is_held()
    }

    /// The late result waits for the scan, and so does the run that wants to know of it.
    pub(super) fn late_result_is_held(&self) -> bool {
        self.has_late_result() && self.output_stage() == Some(OutputStage::Held)
    }

    /// Only a job that is over keeps a late result: until then one that counts may come.
    pub(super) fn has_late_result(&self) -> bool {
        self.life.late.is_some() && self.life.state.is_terminal() && !self.is_done()
    }

    /// Its work was done by this very attempt.
    pub fn was_done_by(&self, token: &AttemptToken) -> bool {
        self.is_done() && self.life.attempt.token == *token
    }

    fn is_done(&self) -> bool {
        matches!(self.life.state, JobState::Succeeded | JobState::OutputQuarantined) || self.in_output_check()
    }

    /// a success of an attempt that was taken away is taken down, once, and ends nothing.
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
        // its run hears of a held result after the scan, and must not begin to undo what the work used before.
        if transition.job.late_result_is_held() {
            transition.wait_for_scan(token, env.now);
        } else {
            transition.note_left(token);
        }
        Ok(transition)
    }
}

impl Transition {
    /// The current attempt is being taken from its worker, who may finish it all the same, or be at work on it for a while.
    pub(super) fn remember_taken(&mut self, now: Timestamp) {
        if self.job.request.run.is_none() {
            return;
        }
        // A worker that does not have it, and one whose session is closed, are not waited for.
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

    /// This attempt has reported, and the wait for its worker becomes the wait for the scan of its result. A wait whose time is over
    /// has ended, and its run may be undoing already: it hears of the work after the scan, and undoes that too.
    fn wait_for_scan(&mut self, token: &AttemptToken, now: Timestamp) {
        let taken = self.job.life.taken.iter_mut().find(|taken| taken.token == *token);
        if let Some(leaving) = taken.and_then(|taken| taken.leaving.as_mut()).filter(|leaving| leaving.until > now) {
            (leaving.scan, leaving.until) = (true, now + SCAN_PATIENCE);
        }
    }

    /// Nothing of this attempt is under way any more.
    pub(super) fn note_left(&mut self, token: &AttemptToken) {
        if let Some(taken) = self.job.life.taken.iter_mut().find(|taken| taken.token == *token) {
            taken.leaving = None;
        }
    }

    /// The scan of a late result is over, whatever it said: its run hears of the work now.
    pub(super) fn late_came_out(&mut self) {
        if let Some(late) = self.job.life.late.clone() {
            self.note_left(&late.token);
        }
    }

    /// The result passes policy like every other: what undoes the work may read it.
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

    /// What policy holds back is not kept: there is nothing to release of a job that did not succeed.
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

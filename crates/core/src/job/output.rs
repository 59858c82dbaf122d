//! The output policy: a result is checked before it is exposed, or soon after.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Env, EventKind, Failure, Illegal, Job, JobState, Reason, Transition, clipped};
use crate::ids::ActorId;
use crate::output::{OutputDecision, OutputStep, OutputVerdict};
use crate::request::Json;
use crate::time::Timestamp;

/// The progress of the check of the latest result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputCheck {
    /// The attempt that produced the result.
    pub attempt: u32,
    pub stage: OutputStage,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Arc<OutputVerdict>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub released_by: Option<ActorId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputStage {
    /// The content will be scanned; the result is exposed already.
    Scanning,
    /// The content will be scanned; the result is hidden until then.
    Held,
    /// The result was exposed without a scan, and is scanned once a scanner answers.
    Unchecked,
    Checked,
}

/// The verdict of the content scan on one attempt's result.
#[derive(Clone, Debug)]
pub struct Scanned {
    pub attempt: u32,
    pub verdict: Arc<OutputVerdict>,
    /// The result that was scanned.
    pub result: Json,
}

/// A held result that is exposed without a scan.
#[derive(Clone, Debug)]
pub struct UnscannedRelease {
    pub attempt: u32,
    pub why: Arc<str>,
    pub result: Json,
}

impl Job {
    pub(super) fn output_stage(&self) -> Option<OutputStage> {
        self.life.output.as_ref().map(|check| check.stage)
    }

    /// The handler succeeded and the scan holds the result: no worker holds the attempt, and no timer ends it.
    pub fn in_output_check(&self) -> bool {
        self.life.state == JobState::Running && self.output_stage() == Some(OutputStage::Held)
    }

    pub fn needs_scan(&self) -> bool {
        let waits = matches!(self.output_stage(), Some(OutputStage::Scanning | OutputStage::Held | OutputStage::Unchecked));
        waits && (self.life.state == JobState::Succeeded || self.in_output_check() || self.has_late_result())
    }

    /// G-4: whether the stored result may be shown.
    pub fn result_is_out(&self) -> bool {
        self.life.state != JobState::OutputQuarantined && !self.result_is_held()
    }

    /// Whether the result is hidden until it has been scanned: from every reader, and a late result from its run too.
    pub fn result_is_held(&self) -> bool {
        self.in_output_check() || self.late_result_is_held()
    }

    pub(super) fn scanned(&self, scanned: Scanned, env: &Env<'_>) -> Result<Transition, Illegal> {
        let Some(check) = self.life.output.as_ref().filter(|check| self.needs_scan() && check.attempt == scanned.attempt)
        else {
            return Err(Illegal::State { input: "scan", state: self.life.state });
        };
        let (released, attempt) = (check.stage != OutputStage::Held, check.attempt);
        let mut transition = Transition::from(self);
        if self.has_late_result() {
            transition.late_decided(&scanned.verdict, scanned.result, env);
            transition.late_came_out();
            return Ok(transition);
        }
        Ok(transition.output_decided(&scanned.verdict, scanned.result, released, env.now).about(attempt))
    }

    pub(super) fn let_out(&self, let_out: UnscannedRelease, env: &Env<'_>) -> Result<Transition, Illegal> {
        let UnscannedRelease { attempt, why, result } = let_out;
        if !self.result_is_held() || self.life.output.as_ref().is_none_or(|check| check.attempt != attempt) {
            return Err(Illegal::State { input: "letting out", state: self.life.state });
        }
        let mut transition = Transition::from(self);
        if self.has_late_result() {
            transition.keep_late(attempt, result, OutputStep::Unchecked { why }, env);
            transition.late_came_out();
            return Ok(transition);
        }
        transition.event(EventKind::OutputUnchecked, env.now, |event| event.message = Some(why));
        transition.event(EventKind::Succeeded, env.now, |_| {});
        transition.result = Some(result);
        let mut next = transition.end(JobState::Succeeded, None, env.now);
        // Set the stage last: `end` asks `holder()`, which says None only while the stage is `Held`. The scan stays owed.
        let stage = OutputStage::Unchecked;
        next.job.life.output = Some(OutputCheck { attempt, stage, verdict: None, released_by: None });
        Ok(next.about(attempt))
    }

    pub(super) fn released(&self, actor: ActorId, note: Option<&str>, env: &Env<'_>) -> Result<Transition, Illegal> {
        if self.life.state != JobState::OutputQuarantined {
            return Err(Illegal::State { input: "release", state: self.life.state });
        }
        let mut transition = Transition::from(self);
        if let Some(check) = &mut transition.job.life.output {
            check.released_by = Some(actor.clone());
        }
        transition.event(EventKind::Released, env.now, |event| {
            event.actor = Some(actor);
            event.message = note.map(clipped);
        });
        (transition.job.life.last_error, transition.job.life.discarded) = (None, None);
        Ok(transition.end(JobState::Succeeded, None, env.now))
    }
}

impl Transition {
    /// The handler succeeded: ends the job, or holds its result, by what the metadata check says.
    pub(super) fn succeed(mut self, result: Json, step: OutputStep, env: &Env<'_>) -> Self {
        let attempt = self.job.life.attempt.no;
        let check = |stage| Some(OutputCheck { attempt, stage, verdict: None, released_by: None });
        match step {
            OutputStep::Pass => self.job.life.output = None,
            OutputStep::Scan { hold: false } => self.job.life.output = check(OutputStage::Scanning),
            OutputStep::Scan { hold: true } => {
                self.settle();
                self.job.life.output = check(OutputStage::Held);
                self.job.life.state = JobState::Running;
                self.job.life.lost = None;
                self.event(EventKind::OutputHeld, env.now, |_| {});
                self.result = Some(result);
                return self;
            }
            OutputStep::Decided(verdict) => return self.output_decided(&verdict, result, false, env.now),
            OutputStep::Unchecked { why } => {
                self.job.life.output = check(OutputStage::Unchecked);
                self.event(EventKind::OutputUnchecked, env.now, |event| event.message = Some(why));
            }
        }
        self.event(EventKind::Succeeded, env.now, |_| {});
        self.result = Some(result);
        self.end(JobState::Succeeded, None, env.now)
    }

    /// Marks all events as about this attempt, which may be one that had been declared lost before it reported.
    pub(super) fn about(mut self, attempt: u32) -> Self {
        let late_of = Some(attempt).filter(|no| *no != self.job.life.attempt.no);
        self.events.iter_mut().for_each(|event| event.late_of = late_of);
        self
    }

    /// Applies the scan's verdict. `released`: the job has already succeeded, and only its result is in question.
    fn output_decided(self, verdict: &Arc<OutputVerdict>, result: Json, released: bool, now: Timestamp) -> Self {
        let attempt = self.job.life.output.as_ref().map_or(self.job.life.attempt.no, |check| check.attempt);
        let mut next = self.come_out(verdict, result, released, now);
        // Set the stage last: `end` asks `holder()`, which says None only while the stage is `Held`. The redacted copy is
        // the job's result now, so the verdict does not keep it.
        next.job.life.output = Some(OutputCheck {
            attempt,
            stage: OutputStage::Checked,
            verdict: Some(Arc::new(OutputVerdict { redacted: None, ..(**verdict).clone() })),
            released_by: None,
        });
        next
    }

    fn come_out(mut self, verdict: &OutputVerdict, result: Json, released: bool, now: Timestamp) -> Self {
        let result = match (verdict.decision, &verdict.redacted) {
            (OutputDecision::Allow, _) => result,
            (OutputDecision::Redact, Some(redacted)) => {
                self.output_event(EventKind::OutputRedacted, verdict, None, now);
                redacted.clone()
            }
            _ => return self.quarantine(verdict, result, now),
        };
        self.result = Some(result);
        if released {
            return self;
        }
        self.event(EventKind::Succeeded, now, |_| {});
        self.end(JobState::Succeeded, None, now)
    }

    fn quarantine(mut self, verdict: &OutputVerdict, result: Json, now: Timestamp) -> Self {
        self.output_event(EventKind::OutputQuarantined, verdict, Some(Reason::OutputQuarantined), now);
        self.result = Some(result);
        let failure = Failure::new(Reason::OutputQuarantined, verdict.reason.clone());
        self.end(JobState::OutputQuarantined, Some(failure), now)
    }

    pub(super) fn output_event(&mut self, kind: EventKind, verdict: &OutputVerdict, reason: Option<Reason>, now: Timestamp) {
        let findings = verdict.findings.len();
        let message = match findings {
            0 => verdict.reason.to_string(),
            1 => format!("{} (1 finding)", verdict.reason),
            _ => format!("{} ({findings} findings)", verdict.reason),
        };
        let rule = format!("{}#{}", verdict.snapshot, verdict.rule);
        self.event(kind, now, |event| {
            event.reason = reason;
            event.message = Some(message.into());
            event.rule = Some(rule.into());
        });
    }
}

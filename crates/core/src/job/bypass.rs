//! Jobs that ran without a verdict because nobody could give one and the fail mode is open. Each is judged later.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Env, EventKind, Failure, Illegal, Job, Reason, Transition};
use crate::time::Timestamp;
use crate::verdict::{Decision, Judgement, Verdict};

/// An entry of the bypass ledger. It stays in the life it happened in; a replay starts clean.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bypass {
    /// The latest attempt that was let through.
    pub attempt: u32,
    pub at: Timestamp,
    pub reason: Arc<str>,
    /// What the kernel said when it was back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Arc<Verdict>>,
}

impl Bypass {
    /// Whether it should not have been let through.
    pub fn was_wrong(&self) -> bool {
        self.judged.as_ref().is_some_and(|verdict| !allows(verdict.decision))
    }
}

const fn allows(decision: Decision) -> bool {
    matches!(decision, Decision::Allow | Decision::AllowWithConstraints | Decision::Throttle)
}

impl Job {
    pub fn needs_rejudging(&self) -> bool {
        self.life.bypass.as_ref().is_some_and(|bypass| bypass.judged.is_none())
    }

    /// The kernel is back and says what it would have said.
    pub(super) fn rejudged(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        let Some(bypass) = self.life.bypass.as_ref().filter(|_| self.needs_rejudging()) else {
            return Err(Illegal::State { input: "judging a bypass", state: self.life.state });
        };
        let Judgement::Decided(verdict) = env.judgement.clone() else { return Err(Illegal::NotDue) };
        if verdict.bypassed {
            return Err(Illegal::NotDue);
        }
        let mut transition = Transition::from(self);
        let judged = Bypass { judged: Some(verdict.clone()), ..bypass.clone() };
        let wrong = judged.was_wrong();
        transition.job.life.bypass = Some(judged);
        if !wrong {
            return Ok(transition);
        }
        let rule = format!("{}#{}", verdict.snapshot, verdict.rule);
        transition.event(EventKind::BypassRefused, env.now, |event| {
            event.rule = Some(rule.into());
            event.message = Some(verdict.reason.clone());
        });
        if self.life.state.is_terminal() || self.in_output_check() {
            return Ok(transition);
        }
        transition.stop_worker();
        let text = format!("let through while the safety kernel was away, and refused now: {}", verdict.reason);
        Ok(transition.denied(Failure::new(Reason::Denied, text), None, env.now))
    }
}

impl Transition {
    /// Notes a verdict that nobody gave.
    pub(super) fn note_bypass(&mut self, verdict: &Verdict, now: Timestamp) {
        if !verdict.bypassed {
            return;
        }
        let attempt = self.job.life.attempt.no;
        self.job.life.bypass = Some(Bypass { attempt, at: now, reason: verdict.reason.clone(), judged: None });
        self.event(EventKind::SafetyBypassed, now, |event| event.message = Some(verdict.reason.clone()));
    }
}

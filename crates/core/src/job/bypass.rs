//! Jobs that ran without a verdict because the safety kernel did not answer and the fail mode is open. Each is judged
//! afterwards.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Env, EventKind, Illegal, Job, Transition};
use crate::time::Timestamp;
use crate::verdict::{Judgement, Verdict};

/// An entry of the bypass ledger. It belongs to one life of the job; a replay starts without it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bypass {
    /// The latest attempt that ran without a verdict.
    pub attempt: u32,
    pub at: Timestamp,
    pub reason: Arc<str>,
    /// The verdict that the kernel gave once it answered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judged: Option<Arc<Verdict>>,
    /// The later verdict refuses the job: the bypass was a mistake.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub wrong: bool,
}

impl Job {
    pub fn needs_rejudging(&self) -> bool {
        self.life.bypass.as_ref().is_some_and(|bypass| bypass.judged.is_none())
    }

    /// Records the verdict that the kernel gives afterwards for an attempt that ran without one.
    pub(super) fn rejudged(&self, env: &Env<'_>) -> Result<Transition, Illegal> {
        let Some(bypass) = self.life.bypass.as_ref().filter(|_| self.needs_rejudging()) else {
            return Err(Illegal::State { input: "judging a bypass", state: self.life.state });
        };
        let Judgement::Decided(verdict) = env.judgement.clone() else { return Err(Illegal::NotDue) };
        if verdict.bypassed {
            return Err(Illegal::NotDue);
        }
        let mut transition = Transition::from(self);
        let wrong = !env.judgement_allows(&self.life);
        transition.job.life.bypass = Some(Bypass { judged: Some(verdict.clone()), wrong, ..bypass.clone() });
        if !wrong {
            return Ok(transition);
        }
        let rule = format!("{}#{}", verdict.snapshot, verdict.rule);
        transition.event(EventKind::BypassRefused, env.now, |event| {
            event.rule = Some(rule.into());
            event.message = Some(verdict.reason.clone());
        });
        // Only the attempt that ran without a verdict is revoked; a later attempt waits for its own verdict.
        let on_its_way = self.life.attempt.verdict.as_ref().is_some_and(|verdict| verdict.bypassed);
        if self.life.state.is_terminal() || self.in_output_check() || !on_its_way {
            return Ok(transition);
        }
        transition.stop_worker(env.now);
        Ok(transition.next_attempt(env.now, env))
    }
}

impl Transition {
    /// Records the bypass that stands in for a verdict.
    pub(super) fn note_bypass(&mut self, verdict: &Verdict, now: Timestamp) {
        if !verdict.bypassed {
            return;
        }
        let attempt = self.job.life.attempt.no;
        self.job.life.bypass = Some(Bypass { attempt, at: now, reason: verdict.reason.clone(), judged: None, wrong: false });
        self.event(EventKind::SafetyBypassed, now, |event| event.message = Some(verdict.reason.clone()));
    }
}

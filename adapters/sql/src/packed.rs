//! The stored encoding of lives and events: JSON with short names, and times relative to the submit.
//!
//! Both are rewritten with every change of the job and copied through the log and the checkpoint, so each byte saved here is
//! saved several times. JSON all the same: fields can be added, and a person can read a row with the help of this file.

use std::sync::Arc;

use lockgate_core::ids::{ActorId, AttemptToken, JobId, SessionId, WorkerId};
use lockgate_core::job::{
    Approval, Attempt, Binding, Bypass, Counters, Discard, EventKind, Failure, Family, JobEvent, JobState, Life,
    LostAttempt, OutputCheck, Reason,
};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::Verdict;
use serde::{Deserialize, Serialize, Serializer};

/// Usual lengths, so that texts are seldom reallocated while they grow.
const LIFE_BYTES: usize = 384;
const EVENT_BYTES: usize = 128;

/// The text of a life without its state, which has its own column.
pub fn life_text(life: &Life) -> Result<String, serde_json::Error> {
    text(LIFE_BYTES, |text| serde_json::to_writer(text, &PackedLife::pack(life)))
}

pub fn read_life(text: &str, state: JobState) -> Result<Life, serde_json::Error> {
    Ok(serde_json::from_str::<PackedLife>(text)?.unpack(state))
}

/// One JSON text per line, appended to those written before.
pub fn events_text(events: &[JobEvent]) -> Result<String, serde_json::Error> {
    text(events.len() * EVENT_BYTES, |text| {
        events.iter().try_for_each(|event| {
            serde_json::to_writer(&mut *text, &PackedEvent::from(event))?;
            text.push(b'\n');
            Ok(())
        })
    })
}

pub fn read_events(text: &str) -> Result<Vec<JobEvent>, serde_json::Error> {
    text.lines().map(|line| Ok(serde_json::from_str::<PackedEvent>(line)?.into())).collect()
}

/// A text with room for `usual_bytes`.
pub(crate) fn text(
    usual_bytes: usize,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<String, serde_json::Error> {
    let mut text = Vec::with_capacity(usual_bytes);
    write(&mut text)?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// A [`Life`] without its state.
#[derive(Serialize, Deserialize)]
struct PackedLife {
    #[serde(rename = "n")]
    no: u32,
    #[serde(rename = "a")]
    attempt: PackedAttempt,
    #[serde(rename = "c", default, skip_serializing_if = "is_default")]
    counters: PackedCounters,
    #[serde(rename = "s")]
    submitted_at: Timestamp,
    #[serde(rename = "b", default, skip_serializing_if = "is_default")]
    began: PackedSpan,
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    due: PackedSpan,
    #[serde(rename = "x", default, skip_serializing_if = "Option::is_none")]
    deadline: Option<PackedSpan>,
    #[serde(rename = "z", default, skip_serializing_if = "Option::is_none")]
    ended: Option<PackedSpan>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    last_error: Option<Failure>,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    lost: Option<LostAttempt>,
    #[serde(rename = "g", default, skip_serializing_if = "Vec::is_empty")]
    taken: Vec<LostAttempt>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    late: Option<LostAttempt>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    memo_of: Option<JobId>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    approval: Option<Approval>,
    #[serde(rename = "o", default, skip_serializing_if = "Option::is_none")]
    output: Option<OutputCheck>,
    #[serde(rename = "y", default, skip_serializing_if = "Option::is_none")]
    bypass: Option<Bypass>,
    #[serde(rename = "k", default, skip_serializing_if = "Option::is_none")]
    family: Option<Family>,
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    discarded: Option<Discard>,
    #[serde(rename = "e")]
    events: u64,
}

/// Milliseconds since the submit; saves bytes over absolute times.
#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
struct PackedSpan(i64);

impl PackedSpan {
    fn between(submitted: Timestamp, at: Timestamp) -> Self {
        Self(at.as_millis().wrapping_sub(submitted.as_millis()))
    }

    fn after(self, submitted: Timestamp) -> Timestamp {
        Timestamp::from_millis(submitted.as_millis().wrapping_add(self.0))
    }
}

/// Thousands of jobs share a verdict, so its JSON is cached in the verdict.
fn written_once<S: Serializer>(verdict: &Option<Arc<Verdict>>, serializer: S) -> Result<S::Ok, S::Error> {
    match verdict.as_ref().and_then(|verdict| verdict.as_json()) {
        Some(json) => json.serialize(serializer),
        None => verdict.serialize(serializer),
    }
}

#[derive(Serialize, Deserialize)]
struct PackedAttempt {
    #[serde(rename = "n")]
    no: u32,
    #[serde(rename = "t")]
    token: AttemptToken,
    #[serde(rename = "v", default, skip_serializing_if = "Option::is_none", serialize_with = "written_once")]
    verdict: Option<Arc<Verdict>>,
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    binding: Option<PackedBinding>,
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    started: Option<PackedSpan>,
}

#[derive(Serialize, Deserialize)]
struct PackedBinding {
    #[serde(rename = "s")]
    session: SessionId,
    #[serde(rename = "w")]
    worker: WorkerId,
    #[serde(rename = "d")]
    dispatched: PackedSpan,
    #[serde(rename = "t")]
    timeout: PackedSpan,
    #[serde(rename = "b")]
    start_by: PackedSpan,
    #[serde(rename = "a")]
    assignment: u64,
}

#[derive(Default, PartialEq, Serialize, Deserialize)]
struct PackedCounters {
    #[serde(rename = "f", default, skip_serializing_if = "is_default")]
    failures: u32,
    #[serde(rename = "i", default, skip_serializing_if = "is_default")]
    infra_failures: u32,
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    snoozes: u32,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl PackedLife {
    /// `unpack` does not compile without a new field of `Life`; these patterns do, because each ends in `..`. Add the
    /// field here too.
    fn pack(life: &Life) -> Self {
        let Life { no, state: _, attempt, counters, submitted_at, began_at, due_at, deadline_at, .. } = life;
        let Life { ended_at, last_error, lost, taken, late, memo_of, approval, output, bypass, family, .. } = life;
        let Life { discarded, events, .. } = life;
        let Counters { failures, infra_failures, snoozes } = *counters;
        let span = |at: &Timestamp| PackedSpan::between(*submitted_at, *at);
        Self {
            no: *no,
            attempt: PackedAttempt::pack(attempt, *submitted_at),
            counters: PackedCounters { failures, infra_failures, snoozes },
            submitted_at: *submitted_at,
            began: span(began_at),
            due: span(due_at),
            deadline: deadline_at.as_ref().map(span),
            ended: ended_at.as_ref().map(span),
            last_error: last_error.clone(),
            lost: lost.clone(),
            taken: taken.clone(),
            late: late.clone(),
            memo_of: memo_of.clone(),
            approval: approval.clone(),
            output: output.clone(),
            bypass: bypass.clone(),
            family: family.clone(),
            discarded: discarded.clone(),
            events: *events,
        }
    }

    fn unpack(self, state: JobState) -> Life {
        let PackedCounters { failures, infra_failures, snoozes } = self.counters;
        let at = |span: PackedSpan| span.after(self.submitted_at);
        Life {
            no: self.no,
            state,
            attempt: self.attempt.unpack(self.submitted_at),
            counters: Counters { failures, infra_failures, snoozes },
            submitted_at: self.submitted_at,
            began_at: at(self.began),
            due_at: at(self.due),
            deadline_at: self.deadline.map(at),
            ended_at: self.ended.map(at),
            last_error: self.last_error,
            lost: self.lost,
            taken: self.taken,
            late: self.late,
            memo_of: self.memo_of,
            approval: self.approval,
            output: self.output,
            bypass: self.bypass,
            family: self.family,
            discarded: self.discarded,
            events: self.events,
        }
    }
}

impl PackedAttempt {
    fn pack(attempt: &Attempt, submitted: Timestamp) -> Self {
        let Attempt { no, token, verdict, binding, started_at } = attempt;
        let span = |at: Timestamp| PackedSpan::between(submitted, at);
        let bind = |binding: &Binding| {
            let Binding { session, worker, dispatched_at, timeout_at, start_by, assignment } = binding;
            PackedBinding {
                session: session.clone(),
                worker: worker.clone(),
                dispatched: span(*dispatched_at),
                timeout: span(*timeout_at),
                start_by: span(*start_by),
                assignment: *assignment,
            }
        };
        Self {
            no: *no,
            token: token.clone(),
            verdict: verdict.clone(),
            binding: binding.as_ref().map(bind),
            started: started_at.map(span),
        }
    }

    fn unpack(self, submitted: Timestamp) -> Attempt {
        let bind = |binding: PackedBinding| Binding {
            session: binding.session,
            worker: binding.worker,
            dispatched_at: binding.dispatched.after(submitted),
            timeout_at: binding.timeout.after(submitted),
            start_by: binding.start_by.after(submitted),
            assignment: binding.assignment,
        };
        Attempt {
            no: self.no,
            token: self.token,
            verdict: self.verdict,
            binding: self.binding.map(bind),
            started_at: self.started.map(|span| span.after(submitted)),
        }
    }
}

/// A [`JobEvent`].
#[derive(Serialize, Deserialize)]
struct PackedEvent {
    n: u64,
    #[serde(rename = "t")]
    at: Timestamp,
    #[serde(rename = "k")]
    kind: EventKind,
    #[serde(rename = "a")]
    attempt: u32,
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    late_of: Option<u32>,
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    worker: Option<WorkerId>,
    #[serde(rename = "r", default, skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    message: Option<Arc<str>>,
    #[serde(rename = "u", default, skip_serializing_if = "Option::is_none")]
    until: Option<Timestamp>,
    #[serde(rename = "c", default, skip_serializing_if = "Option::is_none")]
    actor: Option<ActorId>,
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    rule: Option<Arc<str>>,
    #[serde(rename = "h", default, skip_serializing_if = "std::ops::Not::not")]
    payload_hidden: bool,
}

impl From<&JobEvent> for PackedEvent {
    fn from(event: &JobEvent) -> Self {
        let JobEvent { n, at, kind, attempt, late_of, worker, reason, message, until, actor, rule, payload_hidden } =
            event.clone();
        Self { n, at, kind, attempt, late_of, worker, reason, message, until, actor, rule, payload_hidden }
    }
}

impl From<PackedEvent> for JobEvent {
    fn from(event: PackedEvent) -> Self {
        let PackedEvent { n, at, kind, attempt, late_of, worker, reason, message, until, actor, rule, payload_hidden } =
            event;
        Self { n, at, kind, attempt, late_of, worker, reason, message, until, actor, rule, payload_hidden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored rows outlive the code that wrote them, so this test fixes the names.
    const LIFE: &str = concat!(
        r#"{"n":2,"a":{"n":3,"t":"tok","v":{"decision":"allow","rule":"r","reason":"why","snapshot":"p1"},"#,
        r#""b":{"s":"ses","w":"wrk","d":10,"t":3010,"b":40,"a":7},"s":11},"c":{"f":1,"i":2,"s":3},"s":1000,"b":-5,"d":6,"#,
        r#""x":90,"z":80,"f":{"reason":"failed","message":"no"},"l":{"no":1,"token":"old"},"#,
        r#""g":[{"no":1,"token":"old"}],"w":{"no":1,"token":"old"},"m":"job-1","#,
        r#""p":{"rule":"r","rule_hash":"h","terms":{"approvers":1},"asked_at":1001},"#,
        r#""o":{"attempt":3,"stage":"held"},"q":{"actor":"ann","at":1002,"reason":"paid"},"e":9}"#
    );
    const EVENT: &str = concat!(
        r#"{"n":4,"t":1005,"k":"attempt_lost","a":3,"l":2,"w":"wrk","r":"agent_lost","m":"gone","u":1009,"c":"ann","#,
        r#""p":"p1#r","h":true}"#
    );

    #[test]
    fn a_life_is_read_as_it_was_written() {
        let life = serde_json::from_str::<PackedLife>(LIFE).unwrap().unpack(JobState::Running);
        assert_eq!((life.no, life.state, life.attempt.no, life.events), (2, JobState::Running, 3, 9));
        let times = [life.submitted_at, life.began_at, life.due_at].map(Timestamp::as_millis);
        assert_eq!(times, [1_000, 995, 1_006]);
        let later = [life.deadline_at, life.ended_at, life.attempt.started_at].map(|at| at.map(Timestamp::as_millis));
        assert_eq!(later, [Some(1_090), Some(1_080), Some(1_011)]);
        let binding = life.attempt.binding.as_ref().unwrap();
        let times = [binding.dispatched_at, binding.timeout_at, binding.start_by].map(Timestamp::as_millis);
        assert_eq!((times, binding.assignment), ([1_010, 4_010, 1_040], 7));
        assert_eq!(life.discarded.as_ref().map(|discard| &*discard.reason), Some("paid"));
        assert_eq!(life.counters, Counters { failures: 1, infra_failures: 2, snoozes: 3 });
        assert_eq!(serde_json::to_string(&PackedLife::pack(&life)).unwrap(), LIFE);
    }

    #[test]
    fn what_is_absent_takes_no_room() {
        let text = r#"{"n":1,"a":{"n":1,"t":"tok"},"s":1000,"e":2}"#;
        let life = serde_json::from_str::<PackedLife>(text).unwrap().unpack(JobState::Pending);
        assert_eq!((life.began_at, life.due_at, life.deadline_at), (life.submitted_at, life.submitted_at, None));
        assert_eq!(serde_json::to_string(&PackedLife::pack(&life)).unwrap(), text);
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let event = JobEvent::from(serde_json::from_str::<PackedEvent>(EVENT).unwrap());
        assert_eq!((event.kind, event.late_of, event.reason), (EventKind::AttemptLost, Some(2), Some(Reason::AgentLost)));
        assert_eq!(serde_json::to_string(&PackedEvent::from(&event)).unwrap(), EVENT);
    }
}

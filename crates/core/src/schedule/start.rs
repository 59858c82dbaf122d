//! Makes the job or run of a slot from the spec and the slot's time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::template::TemplateScope;
use super::timing::write_in;
use super::{DagWork, JobWork, Schedule, ScheduledWork, Slot, SlotKey, SlotOutcome, Spec, Target, Timetable};
use crate::ids::{JobId, RunId};
use crate::request::{Caller, JobRequest, Json, NewJob};
use crate::time::Timestamp;

/// The job or run to begin for a slot.
#[derive(Clone, Debug)]
pub enum Begin {
    Job(Arc<JobRequest>),
    Run(RunAsk),
    /// The target cannot be made: the slot is refused for this reason.
    Nothing(Arc<str>),
}

/// A run of a DAG. Whether the DAG exists and takes the parameters is known only when the run begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunAsk {
    pub id: RunId,
    pub dag: Arc<str>,
    /// The newest version if absent.
    pub version: Option<u32>,
    pub params: Value,
}

impl Schedule {
    /// The tenant and actor of everything that the schedule starts.
    pub fn caller(&self) -> Caller {
        let caller = Caller::of_kind(self.tenant.clone(), self.actor.clone(), self.actor_type.clone());
        Caller { verified: self.actor_verified, ..caller }
    }

    /// Targets of due slots that may not have been begun yet. A slot decided more than `keep` ago is left out: its target
    /// may have ended and been deleted, and would be started again.
    pub fn unbegun(&self, now: Timestamp, keep: Duration) -> impl Iterator<Item = (&Target, Begin)> {
        let due = self.open.iter().filter(move |slot| slot.outcome == SlotOutcome::Due && !is_forgotten(slot, now, keep));
        due.filter_map(|slot| slot.target.as_ref().map(|target| (target, self.begin_target(&slot.key, target))))
    }

    /// Targets that were started and have not been seen to end.
    pub fn at_work(&self) -> impl Iterator<Item = &Target> {
        self.open.iter().filter(|slot| slot.outcome == SlotOutcome::Started).filter_map(|slot| slot.target.as_ref())
    }

    /// When a slot was due. None for other series: backfills are late by intent.
    pub fn due_at(&self, key: &SlotKey) -> Option<Timestamp> {
        if !key.series.is_own() {
            return key.series.is_in_line().then_some(key.nominal);
        }
        let next = || Timetable::of(&self.spec).ok()?.next(key.nominal);
        let jitter = if self.spec.jitter_ms == 0 { Duration::ZERO } else { self.jitter(key, next()) };
        Some(key.nominal + jitter)
    }

    fn begin_target(&self, key: &SlotKey, target: &Target) -> Begin {
        let made = match (target, &self.spec.work) {
            (Target::Job(id), ScheduledWork::Job(work)) => self.scope(key).and_then(|scope| {
                let new = new_job(work, &scope)?;
                let request = JobRequest::check(new, &self.caller(), || id.clone());
                let request = request.map_err(|errors| in_words(&errors))?;
                Ok(Begin::Job(Arc::new(request)))
            }),
            (Target::Run(id), ScheduledWork::Dag(work)) => self.scope(key).and_then(|scope| {
                let params = scope.fill(&work.params, "params")?;
                Json::of(&params).map_err(|error| error.in_field("params").to_string())?;
                let DagWork { name, version, .. } = work;
                Ok(Begin::Run(RunAsk { id: id.clone(), dag: name.clone(), version: *version, params }))
            }),
            _ => Err("the schedule starts something else now".to_owned()),
        };
        made.unwrap_or_else(|reason| Begin::Nothing(reason.into()))
    }

    fn scope(&self, key: &SlotKey) -> Result<TemplateScope, String> {
        scope(&self.name, &self.spec, key)
    }
}

/// The variables of a spec's expressions.
pub(super) fn scope(name: &str, spec: &Spec, key: &SlotKey) -> Result<TemplateScope, String> {
    let nominal = write_in(&spec.time_zone, key.nominal)?;
    Ok(TemplateScope::new(name, &nominal, key.nominal.as_millis(), &key.series.0))
}

/// T-4: the target's row may have been deleted, so whether it was started is not known any more.
pub(super) fn is_forgotten(slot: &Slot, now: Timestamp, keep: Duration) -> bool {
    now.since(slot.decided_at) >= keep
}

pub(super) fn new_job(work: &JobWork, scope: &TemplateScope) -> Result<NewJob, String> {
    let payload = scope.fill(&work.payload, "payload")?;
    let payload = Json::of(&payload).map_err(|error| error.in_field("payload").to_string())?;
    let key = work.concurrency_key.as_ref().map(|key| scope.fill_plain(key, "concurrency_key")).transpose()?;
    Ok(NewJob {
        topic: work.topic.to_string(),
        payload: Some(payload),
        priority: work.priority,
        labels: scope.fill_map(&work.labels, "labels")?,
        env: scope.fill_map(&work.env, "env")?,
        max_attempts: work.max_attempts,
        timeout_ms: work.timeout_ms,
        deadline_ms: work.deadline_ms,
        requires: work.requires.clone(),
        capability: work.capability.clone(),
        risk_tags: work.risk_tags.clone(),
        concurrency_key: key,
        ..NewJob::default()
    })
}

fn in_words(errors: &[crate::request::FieldError]) -> String {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    format!("its job is not valid: {}", errors.join("; "))
}

/// The job that the schedule would start, for a check before any time is due.
pub(super) fn sample(name: &str, spec: &Spec, work: &JobWork) -> Result<NewJob, String> {
    let nominal = Timetable::of(spec)?.next(Timestamp::ZERO).unwrap_or_default();
    new_job(work, &scope(name, spec, &SlotKey { series: Default::default(), nominal })?)
}

/// Placeholder for an id that is not known yet.
pub(super) fn some_id() -> JobId {
    JobId::from("x")
}

//! An entry of the saga's log: a compensation, ready to be made into a job.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::compensation::SagaCompensation;
use super::derived_uuid;
use crate::dag::plan::saga_marks;
use crate::hex;
use crate::ids::{ActorId, JobId, TenantId};
use crate::job::{Failure, Reason};
use crate::lane::Priority;
use crate::limits::ENTRIES_MAX;
use crate::request::{Caller, JobRequest, Json, NewJob, RunRef, is_about_placement};

/// The topic of dead letters about unreadable entries. No worker serves it.
pub const UNREADABLE_TOPIC: &str = "lockgate.saga";
/// The variable with the idempotency key: the handler recognises a repeat by it, in whatever round.
const KEY: &str = "saga_idempotency_key";

/// The compensation of a job: its own fields, and those of the job that policy rules match on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SagaEntry {
    topic: String,
    payload: Json,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    max_attempts: Option<u32>,
    timeout_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    /// Chosen by the job's client; otherwise derived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    capability: Option<String>,
    #[serde(default)]
    risk_tags: BTreeSet<String>,
    actor: ActorId,
    actor_type: Option<Arc<str>>,
    trace_id: Option<String>,
}

/// Identifies an entry and its saga.
pub(super) struct Which<'a> {
    pub(super) workflow: &'a str,
    pub(super) tenant: &'a TenantId,
    /// Whether a credential proved who began the saga.
    pub(super) verified: bool,
    pub(super) job: &'a JobId,
    pub(super) life: u32,
    /// The compensation's place in the run.
    pub(super) part: RunRef,
}

impl SagaEntry {
    /// The entry of a job that has a compensation. An unreadable compensation is kept as text, for people to see.
    pub(super) fn of(request: &JobRequest) -> Option<Json> {
        let text = request.compensation.as_ref()?;
        let Ok(undo) = SagaCompensation::read(text) else { return Some(text.clone()) };
        let own = |name: &str| !is_about_placement(name);
        let inherited = request.labels.iter().filter(|(name, _)| own(name));
        let new = undo.as_job();
        let entry = Self {
            topic: new.topic,
            payload: new.payload.unwrap_or_default(),
            labels: merged(inherited, new.labels),
            env: merged(request.env.iter(), new.env),
            max_attempts: new.max_attempts,
            timeout_ms: new.timeout_ms,
            deadline_ms: new.deadline_ms,
            idempotency_key: new.idempotency_key,
            capability: request.capability.as_deref().map(str::to_owned),
            risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
            actor: request.actor.clone(),
            actor_type: request.actor_type.clone(),
            trace_id: request.trace_id.as_deref().map(str::to_owned),
        };
        serde_json::to_string(&entry).ok().map(Json::trusted)
    }

    /// The compensation job, and its id even if the job cannot be made. The id is derived from the entry, so that a decision
    /// made twice makes one job, and no client can choose the id first.
    pub(super) fn job(text: &Json, which: Which<'_>) -> (JobId, Result<Arc<JobRequest>, Failure>) {
        let read = serde_json::from_str::<Self>(text.as_str());
        let (topic, capability) =
            read.as_ref().map_or(("", ""), |entry| (entry.topic.as_str(), entry.capability.as_deref().unwrap_or_default()));
        let RunRef { run, round, .. } = &which.part;
        let key = Sha256::digest(format!("{run}|{}|{topic}|{capability}|{}", which.job, which.life));
        let id = JobId::new(format!("comp-{}~{round}", derived_uuid(&key)));
        let made = match read {
            Ok(entry) => entry.request(&id, &hex::write(&key), which),
            Err(error) => Err(unreadable(&error.to_string())),
        };
        (id, made.map(Arc::new))
    }

    fn request(self, id: &JobId, key: &str, which: Which<'_>) -> Result<JobRequest, Failure> {
        let (mut labels, mut env) = (self.labels, self.env);
        saga_marks(which.workflow, &mut labels, &mut env);
        env.insert(KEY.to_owned(), self.idempotency_key.unwrap_or_else(|| key.to_owned()));
        let caller = Caller::of_kind(which.tenant.clone(), self.actor, self.actor_type);
        let caller = Caller { verified: which.verified, ..caller };
        let new = NewJob {
            topic: self.topic,
            payload: Some(self.payload),
            priority: Some(Priority::Critical),
            max_attempts: self.max_attempts,
            timeout_ms: self.timeout_ms,
            deadline_ms: self.deadline_ms,
            capability: self.capability,
            risk_tags: self.risk_tags,
            trace_id: self.trace_id,
            ..NewJob::default()
        };
        let request = JobRequest::check(new, &caller, || id.clone())
            .map_err(|errors| unreadable(&errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
        // The client's labels and variables were checked when they were submitted; the platform's own are added unchecked.
        Ok(JobRequest { labels, env, run: Some(which.part), ..request })
    }
}

/// The dead job that stands for an unreadable entry: its dead letter shows the entry.
pub(super) fn stand_in(id: &JobId, text: &Json, which: Which<'_>) -> Option<Arc<JobRequest>> {
    let (mut labels, mut env) = (BTreeMap::new(), BTreeMap::new());
    saga_marks(which.workflow, &mut labels, &mut env);
    let payload = serde_json::json!({ "job_id": which.job, "entry": text.as_str() }).to_string();
    let new = NewJob {
        topic: UNREADABLE_TOPIC.to_owned(),
        payload: Some(Json::trusted(payload)),
        priority: Some(Priority::Critical),
        labels,
        env,
        ..NewJob::default()
    };
    let caller = Caller::new(which.tenant.clone(), "lockgate");
    let request = JobRequest::check(new, &caller, || id.clone()).ok()?;
    Some(Arc::new(JobRequest { run: Some(which.part), ..request }))
}

fn unreadable(message: &str) -> Failure {
    Failure::new(Reason::SagaUnmarshalFailed, format!("what says how to undo it cannot be read: {message}"))
}

/// The job's own labels or variables, as many as fit beside those of the compensation.
fn merged<'a>(
    inherited: impl Iterator<Item = (&'a String, &'a String)>,
    own: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let room = ENTRIES_MAX.saturating_sub(own.len());
    let mut all: BTreeMap<String, String> =
        inherited.filter(|(name, _)| !own.contains_key(*name)).take(room).map(|(k, v)| (k.clone(), v.clone())).collect();
    all.extend(own);
    all
}

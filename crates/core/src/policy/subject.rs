//! The subject of a policy evaluation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lane::Priority;
use crate::request::JobRequest;
use crate::time::Timestamp;

/// The label that names the workflow a job belongs to, for the overlay of that workflow.
pub const WORKFLOW_LABEL: &str = "workflow_id";

/// One job at one time, borrowed from its owner.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub job_id: &'a str,
    pub tenant: &'a str,
    pub topic: &'a str,
    pub capability: Option<&'a str>,
    pub risk_tags: &'a BTreeSet<Arc<str>>,
    pub requires: &'a BTreeSet<Arc<str>>,
    pub labels: &'a BTreeMap<String, String>,
    pub actor: &'a str,
    pub actor_type: Option<&'a str>,
    pub priority: Priority,
    /// The payload as JSON text.
    pub payload: &'a str,
    pub now: Timestamp,
}

impl<'a> Subject<'a> {
    pub fn new(request: &'a JobRequest, now: Timestamp) -> Self {
        Self {
            job_id: request.job_id.as_str(),
            tenant: request.tenant.as_str(),
            topic: request.topic.as_str(),
            capability: request.capability.as_deref(),
            risk_tags: &request.risk_tags,
            requires: &request.requires,
            labels: &request.labels,
            actor: request.actor.as_str(),
            actor_type: request.actor_type.as_deref(),
            priority: request.priority(),
            payload: request.payload.as_str(),
            now,
        }
    }

    /// The workflow whose overlay applies.
    pub(super) fn workflow(&self) -> Option<&'a str> {
        self.labels.get(WORKFLOW_LABEL).map(String::as_str)
    }
}

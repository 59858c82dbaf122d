//! A step of a run as the columns it will be written to. Filled by the caller, like the sheets of jobs.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{NodeKey, RunHead};
use lockgate_ports::store::{RunChange, RunKey};

use crate::error::Fault;
use crate::sheet::{Sheet, WEIGHT_BYTES};

pub(crate) struct RunSheet {
    pub(crate) head: RunHead,
    pub(crate) head_text: String,
    pub(crate) nodes: BTreeMap<NodeKey, String>,
    pub(crate) jobs: Vec<Sheet>,
    /// Two of its jobs have one id.
    pub(crate) has_twins: bool,
    pub(crate) heard: Vec<i64>,
    /// Only of a new run.
    pub(crate) key: Option<RunKey>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl RunSheet {
    pub(crate) fn fill(change: RunChange) -> Result<Self, Fault> {
        let RunChange { head, nodes, jobs, heard, key, audit, outbox } = change;
        let text = |(key, node)| Ok((key, serde_json::to_string(&node)?));
        let nodes = nodes.into_iter().map(text).collect::<Result<_, Fault>>()?;
        let ids: BTreeSet<_> = jobs.iter().map(|birth| birth.job.request.job_id.clone()).collect();
        let has_twins = ids.len() < jobs.len();
        let jobs = RunChange::births(jobs, outbox).into_iter().map(Sheet::fill).collect::<Result<_, Fault>>()?;
        let (head_text, key) = (serde_json::to_string(&head)?, key.filter(|_| head.version == 1));
        Ok(Self { head, head_text, nodes, jobs, has_twins, heard, key, audit })
    }

    pub(crate) fn id(&self) -> &str {
        self.head.id.as_str()
    }

    pub(crate) fn is_start(&self) -> bool {
        self.head.version == 1
    }

    /// Tenant and key.
    pub(crate) fn key(&self) -> Option<(&str, &str)> {
        self.key.as_ref().map(|key| (self.head.tenant.as_str(), &*key.key))
    }

    /// How much it adds to a transaction.
    pub(crate) fn weight(&self) -> usize {
        let bytes = self.head_text.len() + self.nodes.values().map(String::len).sum::<usize>();
        let jobs: usize = self.jobs.iter().map(Sheet::weight).sum();
        1 + self.nodes.len() + jobs + bytes / WEIGHT_BYTES
    }
}

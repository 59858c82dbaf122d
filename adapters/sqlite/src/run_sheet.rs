//! A step of a run as the columns it will be written to. Filled by the caller, like the sheets of jobs.

use std::collections::BTreeSet;

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{NodeKey, RunHead};
use lockgate_ports::store::{RunChange, RunKey};

use crate::error::Fault;
use crate::sheet::Sheet;

pub(crate) struct RunSheet {
    pub(crate) head: RunHead,
    pub(crate) head_text: String,
    pub(crate) nodes: Vec<(NodeKey, String)>,
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

    /// How much it adds to a transaction, in changes.
    pub(crate) fn weight(&self) -> usize {
        1 + self.nodes.len() + self.jobs.len()
    }
}

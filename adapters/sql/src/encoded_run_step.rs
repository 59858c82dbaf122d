//! A step of a run encoded as the columns that it writes. The caller encodes it, before a transaction opens.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::audit::AuditEntry;
use lockgate_core::dag::{NodeKey, RunHead};
use lockgate_ports::JobChange;
use lockgate_ports::store::{RunChange, RunKey};

/// `J` is the Store's encoding of a job.
pub struct EncodedStep<J> {
    pub head: RunHead,
    pub head_text: String,
    pub nodes: BTreeMap<NodeKey, String>,
    pub jobs: Vec<J>,
    /// Whether two of its jobs have one id.
    pub has_twins: bool,
    pub heard: Vec<i64>,
    /// Only for a new run.
    pub key: Option<RunKey>,
    pub audit: Vec<AuditEntry>,
}

impl<J> EncodedStep<J> {
    pub fn fill<E: From<serde_json::Error>>(
        change: RunChange,
        job: impl FnMut(JobChange) -> Result<J, E>,
    ) -> Result<Self, E> {
        let RunChange { head, nodes, jobs, heard, key, audit, outbox } = change;
        let text = |(key, node)| Ok((key, serde_json::to_string(&node)?));
        let nodes = nodes.into_iter().map(text).collect::<Result<_, E>>()?;
        let ids: BTreeSet<_> = jobs.iter().map(|birth| birth.job.request.job_id.clone()).collect();
        let has_twins = ids.len() < jobs.len();
        let jobs = RunChange::births(jobs, outbox).into_iter().map(job).collect::<Result<_, E>>()?;
        let (head_text, key) = (serde_json::to_string(&head)?, key.filter(|_| head.version == 1));
        Ok(Self { head, head_text, nodes, jobs, has_twins, heard, key, audit })
    }

    pub fn id(&self) -> &str {
        self.head.id.as_str()
    }

    pub fn is_start(&self) -> bool {
        self.head.version == 1
    }

    /// The tenant and the key.
    pub fn key(&self) -> Option<(&str, &str)> {
        self.key.as_ref().map(|key| (self.head.tenant.as_str(), &*key.key))
    }
}

//! The request of a child: a job that a worker submits while it runs another.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Caller, FieldError, JobRequest, NewJob};
use crate::hex;
use crate::ids::{JobId, NAME_BYTES_MAX, check_name};
use crate::job::Job;
use crate::limits::CHILD_DEPTH_MAX;
use crate::trace::TraceParent;

/// The parent of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildOf {
    pub parent: JobId,
    /// The life of the parent that submitted the child.
    pub life: u32,
    /// The child's name, unique among the children of that life.
    pub key: Arc<str>,
    /// 1 for a child of a job without a parent.
    pub depth: u32,
}

impl JobRequest {
    /// Checks a child that an attempt of `parent` submits. It has its parent's tenant and actor, and its priority unless it
    /// names one. Its id is derived from the parent, the parent's life and the key, so that an attempt which submits it
    /// again finds it. `trace` is the attempt's trace context.
    pub fn child(parent: &Job, key: &str, new: NewJob, trace: Option<TraceParent>) -> Result<Self, Vec<FieldError>> {
        let of = &parent.request;
        let depth = of.child_of.as_ref().map_or(0, |above| above.depth) + 1;
        let mut errors = Vec::new();
        if let Err(error) = check_name(key) {
            errors.push(FieldError::new("key", error));
        }
        for (field, named) in [("job_id", new.job_id.is_some()), ("idempotency_key", new.idempotency_key.is_some())] {
            if named {
                errors.push(FieldError::new(field, "must be empty: a child is named by its key"));
            }
        }
        if depth > CHILD_DEPTH_MAX {
            let text = format!("are nested too deep: at most {CHILD_DEPTH_MAX} jobs may stand above one another");
            errors.push(FieldError::new("children", text));
        }
        let caller = of.caller();
        let new = NewJob { priority: new.priority.or(of.priority), job_id: None, idempotency_key: None, ..new };
        let id = child_id(&of.job_id, parent.life.no, key);
        match Self::check(new, &Caller { trace, ..caller }, || id) {
            Ok(mut request) if errors.is_empty() => {
                request.id_chosen = true;
                request.child_of = Some(ChildOf { parent: of.job_id.clone(), life: parent.life.no, key: key.into(), depth });
                Ok(request)
            }
            Ok(_) => Err(errors),
            Err(more) => {
                errors.extend(more);
                Err(errors)
            }
        }
    }
}

/// Readable if it is short enough. No client can choose such an id, because names contain no `~`.
fn child_id(parent: &JobId, life: u32, key: &str) -> JobId {
    let id = if life == 1 { format!("{parent}~{key}") } else { format!("{parent}~~{life}~{key}") };
    if id.len() <= NAME_BYTES_MAX {
        return id.into();
    }
    format!("child~{}", hex::write(&Sha256::digest(&id)[..16])).into()
}

//! A change encoded as the columns that it writes.
//!
//! The caller encodes it on its own thread, because all callers share the single writing thread, which should not spend its
//! time formatting JSON.

use lockgate_core::audit::AuditEntry;
use lockgate_core::job::Duty;
use lockgate_ports::JobChange;
use lockgate_sql::JobTexts;

use crate::error::StatementError;

pub(crate) struct EncodedChange {
    pub(crate) change: JobChange,
    pub(crate) life: String,
    /// One JSON text per line, to be appended to the job's column.
    pub(crate) events: String,
    /// Empty unless the job is new, because a request is written only once.
    pub(crate) request: String,
    /// Duties that begin (true) or end (false). Most changes have none.
    pub(crate) duties: Vec<(Duty, bool)>,
    pub(crate) audit: Vec<AuditEntry>,
}

impl EncodedChange {
    pub(crate) fn fill(change: JobChange) -> Result<Self, StatementError> {
        let JobTexts { life, events, request } = JobTexts::of(&change)?;
        let (duties, audit) = (change.transition.duties().collect(), change.transition.audit());
        Ok(Self { change, life, events, request, duties, audit })
    }

    /// Whether the job is new.
    pub(crate) fn is_birth(&self) -> bool {
        self.change.transition.job.version == 1
    }

    pub(crate) fn result(&self) -> Option<&str> {
        self.change.transition.result.as_ref().map(|result| result.as_str())
    }
}

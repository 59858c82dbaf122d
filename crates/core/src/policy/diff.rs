//! Compares two policies: which jobs would a new policy have decided differently?

use std::sync::Arc;

use super::Policy;
use super::subject::Subject;
use super::velocity::Velocity;
use crate::ids::JobId;
use crate::request::JobRequest;
use crate::time::Timestamp;
use crate::verdict::Verdict;

/// A job on which two policies disagree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub job_id: JobId,
    pub old: Arc<Verdict>,
    pub new: Arc<Verdict>,
}

/// Judges every request by both policies, as of the request's time, and returns those whose decisions or constraints differ.
/// A different rule or reason with the same decision is no change.
pub fn diff<'a>(
    old: &Policy,
    new: &Policy,
    requests: impl IntoIterator<Item = (&'a JobRequest, Timestamp)>,
    windows: &dyn Velocity,
) -> Vec<Change> {
    let judge = |(request, now): (&JobRequest, Timestamp)| {
        let subject = Subject::new(request, now);
        let (old, new) = (old.evaluate(&subject, windows), new.evaluate(&subject, windows));
        differs(&old, &new).then(|| Change { job_id: request.job_id.clone(), old, new })
    };
    requests.into_iter().filter_map(judge).collect()
}

fn differs(old: &Verdict, new: &Verdict) -> bool {
    old.decision != new.decision || old.constraints != new.constraints || old.approval != new.approval
}

//! A step of a run as it is written here.

use crate::encoded_change::EncodedChange;

pub(crate) type EncodedRunStep = lockgate_sql::EncodedStep<EncodedChange>;

/// How much a step adds to a transaction, in changes.
pub(crate) fn weight(step: &EncodedRunStep) -> usize {
    1 + step.nodes.len() + step.jobs.len()
}

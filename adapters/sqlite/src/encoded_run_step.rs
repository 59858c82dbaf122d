//! The weight of a run's step in this Store.

use crate::encoded_change::EncodedChange;

pub(crate) type EncodedRunStep = lockgate_sql::EncodedStep<EncodedChange>;

/// The step's weight in a transaction, in changes.
pub(crate) fn weight(step: &EncodedRunStep) -> usize {
    1 + step.nodes.len() + step.jobs.len()
}

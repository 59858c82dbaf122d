//! The weight of a run's step in this Store.

use crate::encoded_change::{EncodedChange, WEIGHT_BYTES};

pub(crate) type EncodedRunStep = lockgate_sql::EncodedStep<EncodedChange>;

/// The step's weight in a transaction.
pub(crate) fn weight(step: &EncodedRunStep) -> usize {
    let bytes = step.head_text.len() + step.nodes.values().map(String::len).sum::<usize>();
    let jobs: usize = step.jobs.iter().map(EncodedChange::weight).sum();
    1 + step.nodes.len() + jobs + bytes / WEIGHT_BYTES
}

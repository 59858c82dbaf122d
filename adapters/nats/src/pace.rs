//! Random delays that keep processes out of step.

use std::time::Duration;

use lockgate_ports::Entropy;

/// A random time from the upper half of `span`.
pub(crate) fn spread(span: Duration, entropy: &dyn Entropy) -> Duration {
    let mut drawn = [0];
    entropy.fill(&mut drawn);
    span / 2 + span * u32::from(drawn[0]) / 512
}

//! Decides which traces are recorded, by the trace's id alone, so that all processes with equal settings record equal
//! traces.

use lockgate_core::trace::{TraceId, TraceParent};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampler {
    /// The share of traces recorded where no upstream service decided, from 0 to 1.
    pub ratio: f64,
    /// Whether an upstream service's decision counts.
    pub follow_parent: bool,
}

impl Sampler {
    pub(crate) fn wants(&self, trace: &TraceId, parent: Option<&TraceParent>) -> bool {
        match parent {
            Some(parent) if self.follow_parent => parent.sampled,
            _ => self.ratio >= 1.0 || trace.place() < self.ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

    fn trace(n: u64) -> TraceId {
        // Spread evenly, as hashes are.
        let mut bytes = [1; 16];
        bytes[8..].copy_from_slice(&n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes());
        TraceId::new(bytes).expect("not zero")
    }

    #[test]
    fn a_ratio_takes_that_part_of_the_traces() {
        let sampler = Sampler { ratio: 0.1, follow_parent: true };
        let taken = (0..10_000).filter(|n| sampler.wants(&trace(*n), None)).count();
        assert!((900..1_100).contains(&taken), "{taken}");
        let (all, none) = (Sampler { ratio: 1.0, ..sampler }, Sampler { ratio: 0.0, ..sampler });
        assert!((0..100).all(|n| all.wants(&trace(n), None) && !none.wants(&trace(n), None)));
    }

    #[test]
    fn the_caller_decides_where_it_is_asked() {
        let parent: TraceParent = SENT.parse().expect("good");
        let asked = Sampler { ratio: 1.0, follow_parent: true };
        assert!(!asked.wants(&parent.trace, Some(&parent)));
        assert!(asked.wants(&parent.trace, Some(&TraceParent { sampled: true, ..parent })));
        assert!(Sampler { follow_parent: false, ..asked }.wants(&parent.trace, Some(&parent)));
    }
}

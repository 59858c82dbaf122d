//! Randomness that is reproducible from its seed.

use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_ports::entropy::Entropy;

/// SplitMix64: every draw is a mixed counter, so it needs no lock, and the same seed gives the same stream.
#[derive(Debug)]
pub struct SeededEntropy {
    counter: AtomicU64,
}

/// The odd number closest to 2⁶⁴ divided by the golden ratio: steps of it visit every state.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl SeededEntropy {
    pub fn new(seed: u64) -> Self {
        Self { counter: AtomicU64::new(seed) }
    }

    pub fn next(&self) -> u64 {
        let mut mixed = self.counter.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 when there is none. The bias is far below anything a test could see.
    pub fn below(&self, bound: usize) -> usize {
        let scaled = (u128::from(self.next()) * bound as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// True once in `n` times.
    pub fn one_in(&self, n: usize) -> bool {
        self.below(n) == 0
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_the_published_one() {
        let entropy = SeededEntropy::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| entropy.next()).collect();
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn filling_is_the_same_for_the_same_seed_only() {
        let fill = |seed| {
            let mut bytes = [0; 21];
            SeededEntropy::new(seed).fill(&mut bytes);
            bytes
        };
        assert_eq!(fill(7), fill(7));
        assert_ne!(fill(7), fill(8));
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let entropy = SeededEntropy::new(3);
        let mut seen = [0; 5];
        for _ in 0..1_000 {
            seen[entropy.below(5)] += 1;
        }
        assert!(seen.iter().all(|count| *count > 100), "{seen:?}");
        assert_eq!(entropy.below(0), 0);
    }
}

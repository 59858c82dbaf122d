//! The system's randomness, drawn in blocks: one system call serves hundreds of ids and tokens.

use lockgate_ports::Entropy;
use parking_lot::Mutex;

const BLOCK_BYTES: usize = 4096;

pub(crate) struct SystemEntropy {
    block: Mutex<EntropyBlock>,
}

struct EntropyBlock {
    bytes: [u8; BLOCK_BYTES],
    used: usize,
}

impl Default for SystemEntropy {
    fn default() -> Self {
        Self { block: Mutex::new(EntropyBlock { bytes: [0; BLOCK_BYTES], used: BLOCK_BYTES }) }
    }
}

impl Entropy for SystemEntropy {
    fn fill(&self, out: &mut [u8]) {
        let mut block = self.block.lock();
        for byte in out {
            if block.used == BLOCK_BYTES {
                // Without randomness tokens could be guessed, so the server must not run.
                if let Err(error) = getrandom::fill(&mut block.bytes) {
                    panic!("the system has no randomness: {error}");
                }
                block.used = 0;
            }
            let used = block.used;
            *byte = std::mem::take(&mut block.bytes[used]);
            block.used += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_bytes_are_given_out_twice() {
        let entropy = SystemEntropy::default();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..2_000 {
            let mut bytes = [0; 16];
            entropy.fill(&mut bytes);
            assert!(seen.insert(bytes));
        }
    }
}

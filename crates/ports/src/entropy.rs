//! Randomness, and the ids made of it.

use lockgate_core::ids::{AttemptToken, JobId, SessionId, token, uuid_v7};
use lockgate_core::retry::Jitter;
use lockgate_core::time::Timestamp;

/// Unpredictable bytes in production, a seeded stream in the simulator.
pub trait Entropy: Send + Sync {
    fn fill(&self, bytes: &mut [u8]);
}

/// The ids that the engine makes. Implemented for every [`Entropy`].
pub trait Mint: Entropy {
    fn job_id(&self, now: Timestamp) -> JobId {
        JobId::from(self.uuid(now))
    }

    fn session_id(&self, now: Timestamp) -> SessionId {
        SessionId::from(self.uuid(now))
    }

    fn uuid(&self, now: Timestamp) -> String {
        let mut random = [0; 10];
        self.fill(&mut random);
        uuid_v7(now, random)
    }

    fn attempt_token(&self) -> AttemptToken {
        let mut random = [0; 16];
        self.fill(&mut random);
        token(random)
    }

    fn jitter(&self) -> Jitter {
        let mut random = [0; 8];
        self.fill(&mut random);
        Jitter::from_bits(u64::from_be_bytes(random))
    }
}

impl<T: Entropy + ?Sized> Mint for T {}

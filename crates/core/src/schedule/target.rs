//! Derives the ids of everything that schedules start.

use std::time::Duration;

use sha2::{Digest, Sha256};

use super::{Schedule, ScheduledWork, SlotKey, Target};
use crate::ids::{JobId, RunId};
use crate::time::Timestamp;

impl Schedule {
    /// T-3: the id is derived from the schedule and the time alone, so that every process that starts the slot starts one
    /// job.
    pub(super) fn target(&self, key: &SlotKey) -> Target {
        let id = self.derived(key);
        match self.spec.work {
            ScheduledWork::Job(_) => Target::Job(JobId::new(format!("{}{id}", JobId::SCHEDULED_PREFIX))),
            ScheduledWork::Dag(_) => Target::Run(RunId::new(format!("{}{id}", RunId::PREFIX))),
        }
    }

    fn derived(&self, key: &SlotKey) -> uuid::Uuid {
        let mut digest = Sha256::new();
        for part in [self.tenant.as_str(), &self.name, &self.birth, &key.series.0] {
            // Names contain no NUL, so different parts hash differently.
            digest.update(part);
            digest.update([0]);
        }
        digest.update(key.nominal.as_millis().to_be_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest.finalize()[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }

    /// The jitter of a nominal time: derived, so that every process computes an equal delay, and shorter than the time until
    /// the next.
    pub(super) fn jitter(&self, key: &SlotKey, next: Option<Timestamp>) -> Duration {
        let most = next.map_or(u64::MAX, |next| next.since(key.nominal).as_millis() as u64).saturating_sub(1);
        let most = most.min(self.spec.jitter_ms);
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&Sha256::digest(self.derived(key).as_bytes())[..8]);
        Duration::from_millis(u64::from_be_bytes(bytes) % (most + 1))
    }
}

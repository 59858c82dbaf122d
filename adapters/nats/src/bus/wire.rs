//! Encodes a ring: a version, flags, then the ids of jobs, each after its length.

use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_ports::Bell;

/// A process that reads another version rings all listeners.
const VERSION: u8 = 1;
const LANES: u8 = 1;
const HEADER_BYTES: usize = 2;
/// Far below the servers' default limit of 1 MiB, so that a large ring does not delay small ones behind it.
pub(crate) const MESSAGE_BYTES: usize = 64 * 1024;

/// Bells that ring together.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DoorbellBatch {
    pub(crate) lanes: bool,
    pub(crate) jobs: Arc<[JobId]>,
}

impl From<Vec<Bell>> for DoorbellBatch {
    fn from(bells: Vec<Bell>) -> Self {
        let mut lanes = false;
        let job = |bell| match bell {
            Bell::Job(id) => Some(id),
            Bell::Lanes => {
                lanes = true;
                None
            }
        };
        let jobs = bells.into_iter().filter_map(job).collect();
        Self { lanes, jobs }
    }
}

impl DoorbellBatch {
    pub(crate) fn is_empty(&self) -> bool {
        !self.lanes && self.jobs.is_empty()
    }

    /// The smallest number of messages. The first one rings for the lanes.
    pub(crate) fn messages(&self) -> Vec<Vec<u8>> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut messages = vec![vec![VERSION, if self.lanes { LANES } else { 0 }]];
        for id in self.jobs.iter().map(JobId::as_str) {
            // Ids are checked when they enter the system, and are far shorter.
            let Ok(length) = u8::try_from(id.len()) else { continue };
            let full = messages.last().is_none_or(|message| message.len() + 1 + id.len() > MESSAGE_BYTES);
            if full {
                messages.push(vec![VERSION, 0]);
            }
            if let Some(message) = messages.last_mut() {
                message.push(length);
                message.extend_from_slice(id.as_bytes());
            }
        }
        messages
    }

    /// None if the message has another version or is no ring.
    pub(crate) fn read(message: &[u8]) -> Option<Self> {
        let (header, mut rest) = message.split_at_checked(HEADER_BYTES)?;
        if header[0] != VERSION {
            return None;
        }
        let mut jobs = Vec::new();
        while let Some((length, ids)) = rest.split_first() {
            let (id, others) = ids.split_at_checked(usize::from(*length))?;
            jobs.push(JobId::from(str::from_utf8(id).ok()?));
            rest = others;
        }
        Some(Self { lanes: header[1] & LANES != 0, jobs: jobs.into() })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read_all(messages: &[Vec<u8>]) -> DoorbellBatch {
        let rings: Vec<DoorbellBatch> =
            messages.iter().map(|message| DoorbellBatch::read(message).expect("a ring")).collect();
        let lanes = rings.iter().any(|ring| ring.lanes);
        DoorbellBatch { lanes, jobs: rings.iter().flat_map(|ring| ring.jobs.iter().cloned()).collect() }
    }

    proptest! {
        #[test]
        fn a_ring_survives_the_wire(lanes: bool, ids in proptest::collection::vec("[a-zA-Z0-9._:-]{1,128}", 0..50)) {
            let ring = DoorbellBatch { lanes, jobs: ids.into_iter().map(JobId::from).collect() };
            prop_assert_eq!(read_all(&ring.messages()), ring);
        }

        #[test]
        fn noise_is_read_without_harm(noise: Vec<u8>) {
            let _ = DoorbellBatch::read(&noise);
        }
    }

    #[test]
    fn a_large_ring_is_split_into_messages_of_bounded_size() {
        let bells =
            (0..100_000).map(|n| Bell::Job(JobId::from(format!("{n:036}")))).chain([Bell::Lanes]).collect::<Vec<_>>();
        let ring = DoorbellBatch::from(bells);
        let messages = ring.messages();
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES));
        assert_eq!(messages.len(), 57);
        assert_eq!(read_all(&messages), ring);
    }

    #[test]
    fn a_ring_for_nobody_is_no_message() {
        assert!(DoorbellBatch::from(Vec::new()).messages().is_empty());
    }

    #[test]
    fn what_another_release_says_is_not_guessed_at() {
        assert_eq!(DoorbellBatch::read(&[2, LANES]), None);
        assert_eq!(DoorbellBatch::read(&[]), None);
        assert_eq!(DoorbellBatch::read(&[VERSION, 0, 5, b'a']), None);
    }
}

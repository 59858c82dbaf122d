//! What a process says of its workers, as bytes: a list in JSON, so that a later release can say more.

use lockgate_ports::Sighting;

/// Workers of one message. One takes about 250 bytes, so a message is as large as the largest ring.
const WORKERS_MAX: usize = 256;

pub(super) fn messages(seen: &[Sighting]) -> Vec<Vec<u8>> {
    // A list of names and numbers can always be written.
    seen.chunks(WORKERS_MAX).filter_map(|some| serde_json::to_vec(some).ok()).collect()
}

/// None if it is not such a list.
pub(super) fn read(message: &[u8]) -> Option<Vec<Sighting>> {
    serde_json::from_slice(message).ok()
}

#[cfg(test)]
mod tests {
    use lockgate_core::worker::Load;

    use super::*;
    use crate::bus::wire::MESSAGE_BYTES;

    #[test]
    fn many_workers_are_split_into_messages_of_bounded_size() {
        let load = Load { cpu: Some(100), gpu: Some(100), memory: Some(100) };
        let seen = |n: usize| Sighting {
            session: format!("{n:036}").into(),
            epoch: u64::from(u32::MAX),
            busy: u32::MAX,
            active_jobs: u32::MAX,
            load,
            attached: false,
            draining: false,
            heard_ms_ago: 30_000,
        };
        let all: Vec<Sighting> = (0..1_000).map(seen).collect();
        let messages = messages(&all);
        assert_eq!(messages.len(), 4);
        assert!(messages.iter().all(|message| message.len() <= MESSAGE_BYTES), "{}", messages[0].len());
        let read: Vec<Sighting> = messages.iter().flat_map(|message| read(message).expect("a list")).collect();
        assert_eq!(read, all);
    }

    #[test]
    fn more_than_is_known_is_overlooked_and_noise_is_nothing() {
        let newer =
            br#"[{"session":"s","epoch":1,"busy":0,"active_jobs":0,"load":{"npu":9},"attached":true,"draining":false,
            "heard_ms_ago":5,"mood":"good"}]"#;
        assert_eq!(read(newer).map(|seen| seen.len()), Some(1));
        assert_eq!(read(b"\x01\x00"), None);
    }
}

//! Encodes a process's sightings: a list in JSON, so that later releases can add fields.

use lockgate_ports::{LEAVING_MAX, Sighting};

use super::wire::MESSAGE_BYTES;

/// One worker takes about 250 bytes, and 35 for each revoked attempt, so a sighting always fits into a message.
const _: () = assert!(1_024 + LEAVING_MAX * 35 < MESSAGE_BYTES);

/// The smallest number of lists, each no larger than the largest ring.
pub(super) fn messages(seen: &[Sighting]) -> Vec<Vec<u8>> {
    let mut messages: Vec<Vec<u8>> = Vec::new();
    // Sightings can always be encoded as JSON.
    for worker in seen.iter().filter_map(|worker| serde_json::to_vec(worker).ok()) {
        match messages.last_mut() {
            Some(message) if message.len() + worker.len() + 2 <= MESSAGE_BYTES => {
                message.push(b',');
                message.extend(worker);
            }
            _ => messages.push([b"[".as_slice(), &worker].concat()),
        }
    }
    messages.iter_mut().for_each(|message| message.push(b']'));
    messages
}

/// None if the message is no such list.
pub(super) fn read(message: &[u8]) -> Option<Vec<Sighting>> {
    serde_json::from_slice(message).ok()
}

#[cfg(test)]
mod tests {
    use lockgate_core::ids::token;
    use lockgate_core::worker::Load;

    use super::*;

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
            slots: 16,
            said: 7,
            claimed: Some(7),
            leaving: vec![token([255; 16]); n % 7],
        };
        let all: Vec<Sighting> = (0..1_000).map(seen).collect();
        let messages = messages(&all);
        assert!((4..9).contains(&messages.len()), "{}", messages.len());
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

//! Searches for commits behind a broken frame of the write-ahead log.
//!
//! SQLite ends its recovery at the first frame with a wrong checksum, and cannot tell a write that a crash cut short from
//! damage in the middle. Each commit is synced before the next one writes, so a crash leaves the remains of at most one
//! transaction behind a gap. Two or more commit frames of one log behind a broken frame were on disk, and acknowledged,
//! before it broke. The remains of one crash must not be counted after the next crash, so a log with such an end is emptied
//! before it is written to.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// The last bit says in which byte order the checksum reads.
const MAGIC: u32 = 0x377f_0682;

/// Where the log becomes unreadable, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenLog {
    /// The number of the first unreadable frame; 0 for the header.
    pub frame: u64,
    /// How many commits follow it.
    pub commits_behind: u64,
}

impl BrokenLog {
    /// More commits than one crash can leave: acknowledged ones.
    pub(crate) const fn is_damage(self) -> bool {
        self.commits_behind >= 2
    }
}

/// Reads the whole log as SQLite does when it opens it. None if the log is missing, or nothing follows its last readable
/// frame.
pub(crate) fn broken(log: &Path) -> io::Result<Option<BrokenLog>> {
    let file = match File::open(log) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut reader = BufReader::with_capacity(1 << 20, file);
    let mut header = [0; HEADER_BYTES];
    if !filled(&mut reader, &mut header)? {
        return Ok(None);
    }
    let page_bytes = word(&header, 8) as usize;
    let is_whole = Sum::of(&header, Sum::default(), &header[..24]).is(&header[24..]) && word(&header, 0) | 1 == MAGIC | 1;
    // A damaged header may give a wrong page size; this Store's pages have 4096 bytes.
    let page_bytes = if page_bytes.is_power_of_two() && (512..=65_536).contains(&page_bytes) { page_bytes } else { 4096 };
    let mut scan = LogScan { header, sum: Sum::stored(&header[24..]), salts: None, found: None };
    if is_whole {
        scan.salts = Some(salts(&header, 16));
    } else {
        scan.found = Some(BrokenLog { frame: 0, commits_behind: 0 });
    }
    let mut frame = vec![0; FRAME_HEADER_BYTES + page_bytes];
    let mut number = 0;
    while filled(&mut reader, &mut frame)? {
        number += 1;
        scan.step(number, &frame);
    }
    Ok(scan.found.filter(|broken| broken.commits_behind > 0))
}

struct LogScan {
    header: [u8; HEADER_BYTES],
    sum: Sum,
    /// The salts of this log; frames from before it restarted have others. Taken from the first frame if the header is
    /// broken.
    salts: Option<[u8; 8]>,
    found: Option<BrokenLog>,
}

impl LogScan {
    fn step(&mut self, number: u64, frame: &[u8]) {
        let is_of_this_log = *self.salts.get_or_insert_with(|| salts(frame, 8)) == salts(frame, 8);
        let is_commit = is_of_this_log && word(frame, 4) != 0;
        if let Some(broken) = &mut self.found {
            broken.commits_behind += u64::from(is_commit);
            return;
        }
        let sum = Sum::of(&self.header, self.sum, &frame[..8]);
        let sum = Sum::of(&self.header, sum, &frame[FRAME_HEADER_BYTES..]);
        if is_of_this_log && sum.is(&frame[16..24]) {
            self.sum = sum;
        } else {
            self.found = Some(BrokenLog { frame: number, commits_behind: u64::from(is_commit) });
        }
    }
}

/// SQLite's running checksum over pairs of words.
#[derive(Clone, Copy, Default)]
struct Sum(u32, u32);

impl Sum {
    fn of(header: &[u8], before: Self, bytes: &[u8]) -> Self {
        let is_big_endian = word(header, 0) & 1 == 1;
        let read = |word: [u8; 4]| if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) };
        let (pairs, _) = bytes.as_chunks::<8>();
        pairs.iter().fold(before, |Self(first, second), [a, b, c, d, e, f, g, h]| {
            let first = first.wrapping_add(read([*a, *b, *c, *d])).wrapping_add(second);
            let second = second.wrapping_add(read([*e, *f, *g, *h])).wrapping_add(first);
            Self(first, second)
        })
    }

    fn stored(bytes: &[u8]) -> Self {
        Self(word(bytes, 0), word(bytes, 4))
    }

    fn is(self, stored: &[u8]) -> bool {
        let Self(first, second) = Self::stored(stored);
        (first, second) == (self.0, self.1)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map_or(0, u32::from_be_bytes)
}

fn salts(bytes: &[u8], at: usize) -> [u8; 8] {
    bytes[at..at + 8].try_into().unwrap_or_default()
}

/// False at the end of the file, also if it ends within a frame.
fn filled(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection;

    /// A log of ten commits, and its bytes.
    fn log(folder: &Path) -> (rusqlite::Connection, Vec<u8>) {
        let writer = connection::writing(&folder.join("x.db")).unwrap();
        writer.execute_batch("CREATE TABLE t (x BLOB)").unwrap();
        for _ in 0..10 {
            writer.execute("INSERT INTO t VALUES (zeroblob(9000))", []).unwrap();
        }
        let bytes = std::fs::read(folder.join("x.db-wal")).unwrap();
        (writer, bytes)
    }

    fn found(folder: &Path, bytes: &[u8]) -> Option<BrokenLog> {
        let copy = folder.join("copy-wal");
        std::fs::write(&copy, bytes).unwrap();
        broken(&copy).unwrap()
    }

    #[test]
    fn only_commits_behind_a_break_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(broken(&folder.path().join("none")).unwrap(), None);
        let (_writer, whole) = log(folder.path());
        assert_eq!(found(folder.path(), &whole), None, "whole");
        assert_eq!(found(folder.path(), &whole[..whole.len() / 2]), None, "cut short: the commit mark tells of that");
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xFF;
            found(folder.path(), &bytes)
        };
        let middle = flipped(whole.len() / 2).expect("damage");
        assert!(middle.is_damage() && middle.frame > 1 && (2..10).contains(&middle.commits_behind), "{middle:?}");
        assert_eq!(flipped(17).map(|broken| broken.frame), Some(0), "the salts of the header");
        assert!(flipped(0).is_some_and(|broken| broken.frame == 0 && broken.commits_behind > 9), "the magic of the header");
        let last = flipped(whole.len() - 10).expect("the end of one transaction");
        assert_eq!((last.commits_behind, last.is_damage()), (1, false), "a crash may have cut it short");
    }

    #[test]
    fn frames_of_the_log_before_it_started_over_are_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let (writer, whole) = log(folder.path());
        writer.query_row("PRAGMA wal_checkpoint(RESTART)", [], |_| Ok(())).unwrap();
        writer.execute("INSERT INTO t VALUES (1)", []).unwrap();
        let restarted = std::fs::read(folder.path().join("x.db-wal")).unwrap();
        assert_eq!(restarted.len(), whole.len(), "older frames lie behind the new one");
        assert_eq!(found(folder.path(), &restarted), None);
    }
}

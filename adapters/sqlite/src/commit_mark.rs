//! The commit mark: a small file beside the database that records how far acknowledged commits went (ADR 21).
//!
//! SQLite silently drops everything after a broken frame of its write-ahead log, and treats a missing log as one that never
//! existed. So every transaction increments a counter in the database, and after the sync and before any caller is answered,
//! the writer records that counter in this file. A database behind its mark has lost acknowledged commits.
//!
//! The mark is overwritten in place and not synced for each commit: it survives the end of the process, and after a power
//! cut it may be older than the database, which raises no alarm. It is never ahead of what was synced, because it is written
//! afterwards.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::folder::private_file;

pub(crate) const COMMIT_MARK: &str = "commit.mark";

const MAGIC: [u8; 8] = *b"LGMARK01";
const SLOT_BYTES: usize = 48;
/// The two copies are in different sectors, so that one torn write damages only one of them.
const SLOTS_AT: [u64; 2] = [0, 4096];
const FILE_BYTES: usize = 8192;

/// How far the commits of an installation went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitPosition {
    /// A random id from when the database was made; distinguishes it from every other database.
    pub installation: [u8; 16],
    /// The number of transactions since then.
    pub commits: u64,
    /// The sequence number of the latest job.
    pub last_seq: i64,
}

impl CommitPosition {
    fn to_slot(self) -> [u8; SLOT_BYTES] {
        let mut slot = [0; SLOT_BYTES];
        slot[..8].copy_from_slice(&MAGIC);
        slot[8..24].copy_from_slice(&self.installation);
        slot[24..32].copy_from_slice(&self.commits.to_le_bytes());
        slot[32..40].copy_from_slice(&self.last_seq.to_le_bytes());
        let sum = checksum(&slot[..40]);
        slot[40..].copy_from_slice(&sum.to_le_bytes());
        slot
    }

    fn from_slot(slot: &[u8; SLOT_BYTES]) -> Option<Self> {
        let number = |at: usize| slot[at..at + 8].try_into().ok().map(u64::from_le_bytes);
        if slot[..8] != MAGIC || number(40)? != checksum(&slot[..40]) {
            return None;
        }
        let installation = slot[8..24].try_into().ok()?;
        Some(Self { installation, commits: number(24)?, last_seq: number(32)?.cast_signed() })
    }
}

/// FNV-1a: it must detect torn and flipped bytes, not forgery.
fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Reads the mark of a data folder. None if there is none, or neither copy is readable.
pub(crate) fn read(folder: &Path) -> io::Result<Option<CommitPosition>> {
    let file = match File::open(folder.join(COMMIT_MARK)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let copies = SLOTS_AT.into_iter().filter_map(|at| {
        let mut slot = [0; SLOT_BYTES];
        file.read_exact_at(&mut slot, at).ok()?;
        CommitPosition::from_slot(&slot)
    });
    Ok(copies.max_by_key(|position| position.commits))
}

/// The writer's handle to the mark.
pub(crate) struct CommitMark {
    /// None if the file could not be made: the database works without it, and a loss would go unnoticed.
    file: Option<File>,
    /// Whether a failure to write the mark was logged already.
    is_stuck: bool,
}

impl CommitMark {
    /// Continues the mark of this installation in place, which needs no space on a full disk; replaces the mark of any
    /// other.
    pub(crate) fn begin(folder: &Path, position: CommitPosition) -> Self {
        let is_ours = matches!(read(folder), Ok(Some(mark)) if mark.installation == position.installation);
        let opened = if is_ours { private_file().open(folder.join(COMMIT_MARK)) } else { make(folder, position) };
        if let Err(error) = &opened {
            tracing::warn!(%error, "the commit mark cannot be written: a write-ahead log that is lost later would not be noticed");
            // The next start would report a remaining mark of another installation as a loss. Removing it needs no space.
            if !is_ours {
                let _ = std::fs::remove_file(folder.join(COMMIT_MARK));
            }
        }
        let mut mark = Self { file: opened.ok(), is_stuck: false };
        mark.advance(position);
        mark
    }

    /// Called after the sync of a commit and before its callers are answered. The two copies are written in turns.
    pub(crate) fn advance(&mut self, position: CommitPosition) {
        let Some(file) = &self.file else { return };
        let at = SLOTS_AT[usize::from(position.commits % 2 == 1)];
        let written = file.write_all_at(&position.to_slot(), at);
        if let (Err(error), false) = (&written, self.is_stuck) {
            tracing::warn!(%error, "the commit mark does not move: a loss of commits since then would not be noticed");
        }
        self.is_stuck = written.is_err();
    }
}

impl Drop for CommitMark {
    /// Syncs, so that a clean stop leaves an exact mark on disk.
    fn drop(&mut self) {
        if let Some(Err(error)) = self.file.as_ref().map(File::sync_data) {
            tracing::warn!(%error, "the commit mark was not synced");
        }
    }
}

/// Written beside its place and then renamed: a crash leaves the old mark or this one.
fn make(folder: &Path, position: CommitPosition) -> io::Result<File> {
    let (aside, place) = (folder.join("commit.mark.new"), folder.join(COMMIT_MARK));
    let file = private_file().create(true).truncate(true).open(&aside)?;
    file.write_all_at(&[0; FILE_BYTES], 0)?;
    for at in SLOTS_AT {
        file.write_all_at(&position.to_slot(), at)?;
    }
    file.sync_all()?;
    std::fs::rename(&aside, &place)?;
    File::open(folder)?.sync_all()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(commits: u64) -> CommitPosition {
        CommitPosition { installation: [7; 16], commits, last_seq: 3 }
    }

    #[test]
    fn the_later_copy_counts_and_a_torn_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
        let mut mark = CommitMark::begin(folder.path(), position(4));
        mark.advance(position(5));
        mark.advance(position(6));
        assert_eq!(read(folder.path()).unwrap(), Some(position(6)));
        let file = File::options().write(true).open(folder.path().join(COMMIT_MARK)).unwrap();
        file.write_all_at(&[0xAA; 4], 26).unwrap();
        assert_eq!(read(folder.path()).unwrap(), Some(position(5)), "6 was torn");
        file.set_len(10).unwrap();
        assert_eq!(read(folder.path()).unwrap(), None);
    }

    #[test]
    fn a_mark_is_carried_on_in_place_and_not_by_another_installation() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let file = || std::fs::metadata(folder.path().join(COMMIT_MARK)).unwrap().ino();
        drop(CommitMark::begin(folder.path(), position(4)));
        let first = file();
        drop(CommitMark::begin(folder.path(), position(9)));
        assert_eq!((read(folder.path()).unwrap(), file()), (Some(position(9)), first));
        let other = CommitPosition { installation: [8; 16], ..position(2) };
        drop(CommitMark::begin(folder.path(), other));
        assert_eq!(read(folder.path()).unwrap(), Some(other), "although it has fewer commits");
        assert_ne!(file(), first);
    }
}

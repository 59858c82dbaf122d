//! The journal's bytes: records of `length, checksum, kind, token length, token, report`, appended and synced in batches.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

const HEADER_BYTES: usize = 12;
const ADDED: u8 = 1;
const REMOVED: u8 = 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JournalRecord {
    Added { token: String, report: Vec<u8> },
    Removed { token: String },
}

/// Reports by token, still encoded.
pub(crate) type LiveReports = BTreeMap<String, Vec<u8>>;

/// An open journal. Locked, so that a second worker with the same path fails instead of mixing its results in.
#[derive(Debug)]
pub(crate) struct JournalFile {
    file: File,
    len: u64,
}

impl JournalFile {
    /// Reads the file. A torn last record, left by a crash during a write, is cut off.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, LiveReports)> {
        let mut file = private().truncate(false).open(path)?;
        lock(&file)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let (live, good) = replay(&bytes);
        if good < bytes.len() {
            tracing::warn!(path = %path.display(), cut = bytes.len() - good, "the journal ends in a torn record; it is cut off");
            file.set_len(good as u64)?;
        }
        file.seek(SeekFrom::Start(good as u64))?;
        sync_folder(path)?;
        Ok((Self { file, len: good as u64 }, live))
    }

    /// Durable on return.
    pub(crate) fn append(&mut self, records: &[JournalRecord]) -> io::Result<()> {
        if records.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        records.iter().for_each(|record| encode(record, &mut bytes));
        self.file.write_all(&bytes)?;
        self.len += bytes.len() as u64;
        self.file.sync_data()
    }

    /// Writes a new file with only the live results and replaces the old one.
    pub(crate) fn replace(path: &Path, live: &LiveReports) -> io::Result<Self> {
        let fresh = PathBuf::from(format!("{}.new", path.display()));
        let file = private().truncate(true).open(&fresh)?;
        lock(&file)?;
        let mut journal = Self { file, len: 0 };
        let records: Vec<_> = live
            .iter()
            .map(|(token, report)| JournalRecord::Added { token: token.clone(), report: report.clone() })
            .collect();
        journal.append(&records)?;
        std::fs::rename(&fresh, path)?;
        sync_folder(path)?;
        Ok(journal)
    }

    pub(crate) fn len(&self) -> u64 {
        self.len
    }
}

/// A new file is readable by its owner only, because results of jobs are private.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => io::Error::new(io::ErrorKind::ResourceBusy, "in use by another worker"),
        std::fs::TryLockError::Error(error) => error,
    })
}

/// A new file name is durable only once its folder is synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    File::open(folder)?.sync_all()
}

fn encode(record: &JournalRecord, bytes: &mut Vec<u8>) {
    let (kind, token, report): (u8, &str, &[u8]) = match record {
        JournalRecord::Added { token, report } => (ADDED, token, report),
        JournalRecord::Removed { token } => (REMOVED, token, &[]),
    };
    let start = bytes.len();
    bytes.extend_from_slice(&[0; HEADER_BYTES]);
    bytes.push(kind);
    bytes.extend_from_slice(&u32::try_from(token.len()).unwrap_or(u32::MAX).to_le_bytes());
    bytes.extend_from_slice(token.as_bytes());
    bytes.extend_from_slice(report);
    let body = bytes.len() - start - HEADER_BYTES;
    let checksum = fnv1a(&bytes[start + HEADER_BYTES..]);
    bytes[start..start + 4].copy_from_slice(&u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
    bytes[start + 4..start + HEADER_BYTES].copy_from_slice(&checksum.to_le_bytes());
}

/// Applies all complete records. Returns the live ones and the number of valid bytes.
fn replay(bytes: &[u8]) -> (LiveReports, usize) {
    let mut live = LiveReports::new();
    let mut rest = bytes;
    while let Some((record, after)) = decode(rest) {
        match record {
            JournalRecord::Added { token, report } => live.insert(token, report),
            JournalRecord::Removed { token } => live.remove(&token),
        };
        rest = after;
    }
    (live, bytes.len() - rest.len())
}

fn decode(bytes: &[u8]) -> Option<(JournalRecord, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (checksum, rest) = rest.split_first_chunk::<8>()?;
    let (body, after) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    if fnv1a(body) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let (kind, rest) = body.split_first()?;
    let (token_length, rest) = rest.split_first_chunk::<4>()?;
    let (token, report) = rest.split_at_checked(u32::from_le_bytes(*token_length) as usize)?;
    let token = String::from_utf8(token.to_vec()).ok()?;
    let record = match *kind {
        ADDED => JournalRecord::Added { token, report: report.to_vec() },
        REMOVED => JournalRecord::Removed { token },
        _ => return None,
    };
    Some((record, after))
}

/// Detects torn records; no defence against forgery.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(token: &str) -> JournalRecord {
        JournalRecord::Added { token: token.to_owned(), report: vec![1, 2, 3] }
    }

    #[test]
    fn a_tail_torn_at_any_byte_costs_only_the_last_record() {
        let mut bytes = Vec::new();
        encode(&added("a"), &mut bytes);
        let first = bytes.len();
        encode(&added("b"), &mut bytes);
        for end in first..bytes.len() {
            let (live, good) = replay(&bytes[..end]);
            assert_eq!((live.len(), good), (1, first), "torn at {end}");
        }
        assert_eq!(replay(&bytes).0.len(), 2);
    }

    #[test]
    fn a_flipped_bit_ends_the_replay() {
        let mut bytes = Vec::new();
        encode(&added("a"), &mut bytes);
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        assert_eq!(replay(&bytes), (LiveReports::new(), 0));
    }

    #[test]
    fn appending_goes_on_after_a_torn_tail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (mut journal, _) = JournalFile::open(&path).unwrap();
        journal.append(&[added("a")]).unwrap();
        journal.file.write_all(&[9; 5]).unwrap();
        drop(journal);
        let (mut journal, live) = JournalFile::open(&path).unwrap();
        assert_eq!(live.len(), 1);
        journal.append(&[added("b")]).unwrap();
        drop(journal);
        assert_eq!(JournalFile::open(&path).unwrap().1.into_keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_journal_is_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        let (journal, live) = JournalFile::open(&path).unwrap();
        assert_eq!(mode(), 0o600);
        drop(journal);
        JournalFile::replace(&path, &live).unwrap();
        assert_eq!(mode(), 0o600);
    }

    #[test]
    fn a_journal_in_use_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (_first, _) = JournalFile::open(&path).unwrap();
        let error = JournalFile::open(&path).unwrap_err();
        assert_eq!(error.to_string(), "in use by another worker");
    }
}

//! The reserve: a file that only occupies disk space. On a full disk it is deleted first, and from then on new work is
//! refused, so that its space goes to finishing the work under way. It is made again once there is space for it and as much
//! again.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::folder::private_file;

pub(crate) const RESERVE: &str = "reserve";

/// With less free space than this the disk counts as full, because opening a database alone needs some.
const FULL_BELOW: u64 = 1 << 20;
/// How often the disk is checked for space while the reserve is spent.
const LOOK_EVERY: Duration = Duration::from_secs(1);
const CHUNK: usize = 1 << 16;

pub(crate) struct Reserve {
    folder: PathBuf,
    /// None: there is no reserve, and new work is accepted as long as it can be written.
    bytes: Option<u64>,
    is_spent: AtomicBool,
    looked: Mutex<Instant>,
}

impl Reserve {
    /// Must be opened before everything else in the folder, which needs space on a full disk.
    pub(crate) fn open(folder: &Path, bytes: Option<u64>) -> Self {
        let reserve =
            Self { folder: folder.to_owned(), bytes, is_spent: AtomicBool::new(false), looked: Mutex::new(Instant::now()) };
        let Some(bytes) = bytes else { return reserve };
        if !is_whole(&reserve.path(), bytes) {
            reserve.is_spent.store(true, Ordering::Relaxed);
            reserve.take();
        }
        if reserve.is_spent() {
            tracing::error!("{}", reserve.what_to_free());
        }
        reserve.give_up();
        reserve
    }

    /// Whether new work is to be refused.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    pub(crate) fn is_disk_full(&self) -> bool {
        self.bytes.is_some() && self.free().is_none_or(|free| free < FULL_BELOW)
    }

    /// The error for new work.
    pub(crate) fn refusal(&self) -> StoreError {
        StoreError::Full(self.what_to_free())
    }

    /// Deletes the reserve if the disk is full. Not for the size limit that the operator set: deleting a file makes no room
    /// below it.
    pub(crate) fn give_up(&self) {
        if self.is_spent() || !self.is_disk_full() {
            return;
        }
        self.is_spent.store(true, Ordering::Relaxed);
        if let Err(error) = std::fs::remove_file(self.path()) {
            tracing::error!(%error, "the reserve of a full disk could not be given up");
        }
        tracing::error!("the reserve is given up: {}", self.what_to_free());
    }

    /// Between two transactions: makes the reserve again if there is space.
    pub(crate) fn look(&self) {
        if !self.is_spent() || self.looked.lock().elapsed() < LOOK_EVERY {
            return;
        }
        *self.looked.lock() = Instant::now();
        self.take();
        if !self.is_spent() {
            tracing::info!("disk space is back: the reserve is restored and new jobs are accepted");
        }
    }

    fn take(&self) {
        let Some(bytes) = self.bytes else { return };
        if self.free().is_some_and(|free| free < bytes.saturating_mul(2)) {
            return;
        }
        match fill(&self.path(), bytes) {
            Ok(()) => self.is_spent.store(false, Ordering::Relaxed),
            Err(error) => {
                tracing::warn!(%error, "the reserve could not be made");
                // Half a reserve would only waste space.
                let _ = std::fs::remove_file(self.path());
            }
        }
    }

    pub(crate) fn what_to_free(&self) -> String {
        let (folder, needed) = (self.folder.display(), self.bytes.unwrap_or_default().saturating_mul(2) >> 10);
        let free = self.free().unwrap_or_default() >> 10;
        format!(
            "the disk of the data folder {folder} is full: {free} KiB are free, and new jobs are taken again from {needed} KiB on. Delete \
             other files on that disk or make it larger; jobs under way are brought to their end"
        )
    }

    fn path(&self) -> PathBuf {
        self.folder.join(RESERVE)
    }

    /// The bytes that this user may still write. None if the system does not tell.
    fn free(&self) -> Option<u64> {
        let disk = rustix::fs::statvfs(&self.folder).ok()?;
        Some(disk.f_bavail.saturating_mul(disk.f_frsize))
    }
}

/// Whether the file is complete and not sparse.
fn is_whole(path: &Path, bytes: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|file| file.len() == bytes && file.blocks().saturating_mul(512) >= bytes)
}

/// Not synced: after a power cut the file may be short, and is made again.
fn fill(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file: File = private_file().create(true).truncate(true).open(path)?;
    let chunk = noise();
    let mut left = bytes;
    while left > 0 {
        let part = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
        file.write_all(&chunk[..part])?;
        left -= part as u64;
    }
    Ok(())
}

/// Bytes that a file system cannot compress.
fn noise() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    std::iter::repeat_with(&mut next).flatten().take(CHUNK).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_room_has_a_reserve_and_gives_it_up_to_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(folder.path(), Some(3 << 16));
        reserve.give_up();
        assert!(!reserve.is_spent(), "the disk is not full");
        assert!(is_whole(&folder.path().join(RESERVE), 3 << 16));
        std::fs::File::options().write(true).open(folder.path().join(RESERVE)).unwrap().set_len(5).unwrap();
        assert!(!Reserve::open(folder.path(), Some(3 << 16)).is_spent(), "what was cut short is made anew");
        assert!(is_whole(&folder.path().join(RESERVE), 3 << 16));
    }

    #[test]
    fn a_disk_without_room_for_it_takes_no_new_work() {
        let folder = tempfile::tempdir().unwrap();
        let reserve = Reserve::open(folder.path(), Some(u64::MAX / 2));
        assert!(reserve.is_spent());
        let told = reserve.refusal().to_string();
        assert!(told.contains("is full") && told.contains("Delete other files on that disk"), "{told}");
        assert!(!Reserve::open(folder.path(), None).is_spent(), "where none is wanted none is missed");
    }
}

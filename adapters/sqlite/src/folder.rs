//! The data folder, and the lock that keeps it to one process.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// Held for as long as any connection is open. The operating system lets go of it when the process dies.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Folder { path: path.to_owned(), error };
        std::fs::create_dir_all(path).map_err(failed)?;
        let lock = File::options().create(true).truncate(false).write(true).open(path.join("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("lockgate.db")
    }
}

//! The data folder: readable by its owner only, and locked by one process.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use crate::error::OpenError;

/// How long a start waits for the previous process. The file is closed on exec, so a child's program does not inherit the
/// lock; but a child between fork and exec when its parent is killed holds the lock until exec.
const FREE_WITHIN: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOCK: &str = "lock";

/// Held while any connection is open. The operating system releases the lock when the process dies.
#[derive(Debug)]
pub(crate) struct DataFolder {
    path: PathBuf,
    _lock: File,
}

impl DataFolder {
    pub(crate) fn claim(path: &Path) -> Result<Self, OpenError> {
        Self::claim_patiently(path, || std::thread::park_timeout(LOOK_EVERY))
    }

    fn claim_patiently(path: &Path, mut rest: impl FnMut()) -> Result<Self, OpenError> {
        let failed = |error| OpenError::Folder { path: path.to_owned(), error };
        private_folder(path).map_err(failed)?;
        let lock = private_file().create(true).truncate(false).open(path.join(LOCK)).map_err(failed)?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { path: path.to_owned(), _lock: lock }),
                Err(TryLockError::WouldBlock) if began.elapsed() < FREE_WITHIN => rest(),
                Err(TryLockError::WouldBlock) => return Err(OpenError::InUse(path.to_owned())),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("lockgate.db")
    }
}

/// Runs `look` while no process can open the folder. None if a process has it open. Writes nothing, so it works on a
/// read-only folder.
pub(crate) fn while_unused<T>(folder: &Path, look: impl FnOnce() -> T) -> io::Result<Option<T>> {
    let lock = match File::open(folder.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(look())),
        Err(error) => return Err(error),
    };
    match lock.try_lock() {
        Ok(()) => Ok(Some(look())),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Makes a folder that only its owner may read, whatever the umask: payloads are private. An existing folder keeps its mode,
/// because its creator may want to give others access; a warning is logged if others have it.
pub fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        if is_open_to_others(path) {
            let todo = "`chmod 700` keeps it to its owner";
            tracing::warn!(folder = %path.display(), "the data folder is accessible to other users of this machine; {todo}");
        }
        return Ok(());
    }
    let mut folder = DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Makes an empty database for its owner only, unless it exists. SQLite gives the files beside a database the same mode.
pub(crate) fn private_database(path: &Path) -> io::Result<()> {
    match private_file().create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made.map(drop),
    }
}

pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn is_open_to_others(folder: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(folder).is_ok_and(|found| found.permissions().mode() & 0o007 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &Path) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::Arc;

    use lockgate_model::ManualClock;

    use super::*;
    use crate::{SqliteEffects, SqliteStore};

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn what_is_made_is_for_its_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("above/data");
        let store = SqliteStore::open(&folder, Arc::new(ManualClock::default())).unwrap();
        let effects = SqliteEffects::open(&folder).unwrap();
        assert!(effects.insert_once("k", "secret").await.unwrap());
        assert_eq!((mode(&place.path().join("above")), mode(&folder)), (0o700, 0o700));
        for file in ["lock", "lockgate.db", "lockgate.db-wal", "lockgate.db-shm", "effects.db", "effects.db-wal"] {
            assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
        }
        drop((store, effects));
        SqliteStore::open(&folder, Arc::new(ManualClock::default())).expect("and it is opened again");
    }

    #[test]
    fn a_start_waits_for_the_lock_of_a_process_that_is_about_to_end() {
        let place = tempfile::tempdir().unwrap();
        let mut first = Some(DataFolder::claim(place.path()).unwrap());
        let mut rests = 0;
        let second = DataFolder::claim_patiently(place.path(), || {
            rests += 1;
            if rests == 3 {
                first = None;
            }
        });
        assert!(second.is_ok(), "{second:?}");
        assert_eq!(rests, 3);
        assert_eq!(while_unused(place.path(), || ()).unwrap(), None);
        drop(second);
        assert_eq!(while_unused(place.path(), || ()).unwrap(), Some(()));
    }

    #[test]
    fn a_child_does_not_keep_the_lock() {
        let place = tempfile::tempdir().unwrap();
        let first = DataFolder::claim(place.path()).unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        drop(first);
        let again = private_file().open(place.path().join(LOCK)).unwrap().try_lock();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(again.is_ok(), "{again:?}");
    }

    #[test]
    fn a_folder_that_is_there_is_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        for (given, open) in [(0o755, true), (0o701, true), (0o750, false), (0o700, false)] {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(given)).unwrap();
            private_folder(folder.path()).unwrap();
            assert_eq!((mode(folder.path()), is_open_to_others(folder.path())), (given, open));
        }
    }
}

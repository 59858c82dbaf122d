//! Keys in a file, read again when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use crate::keyset::{KeySet, Origin};
use crate::settings::SettingsError;

/// A changed file is noticed within this time; looking more often would cost a system call for every token.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct FileKeys {
    path: PathBuf,
    state: Mutex<KeyFileState>,
}

struct KeyFileState {
    keys: Arc<KeySet>,
    /// Of the version that was read last, good or bad; none when the file was not there.
    stamp: Option<Stamp>,
    looked_at: Option<Timestamp>,
}

/// Tells one version of a file from another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: Option<SystemTime>,
    bytes: u64,
}

impl Stamp {
    fn of(metadata: &std::fs::Metadata) -> Self {
        Self { modified: metadata.modified().ok(), bytes: metadata.len() }
    }
}

impl FileKeys {
    /// Reads the file, so that a mistake is known when the server starts and not when the first token comes.
    pub(crate) fn open(path: PathBuf) -> Result<Self, SettingsError> {
        // The stamp is taken first: a change in between is then noticed later, instead of never.
        let stamp = std::fs::metadata(&path).ok().map(|metadata| Stamp::of(&metadata));
        let text = std::fs::read_to_string(&path);
        let keys = Arc::new(parse(&path, text)?);
        Ok(Self { path, state: Mutex::new(KeyFileState { keys, stamp, looked_at: None }) })
    }

    pub(crate) async fn current(&self, now: Timestamp) -> Arc<KeySet> {
        if self.take_turn(now) {
            self.look().await;
        }
        self.state.lock().keys.clone()
    }

    /// A clock that was set back is a reason to look.
    fn take_turn(&self, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        let is_recent = |at: Timestamp| at <= now && now.since(at) < LOOK_EVERY;
        if state.looked_at.is_some_and(is_recent) {
            return false;
        }
        state.looked_at = Some(now);
        true
    }

    /// A file that is away or no longer makes sense changes nothing: the keys that were good stay so.
    async fn look(&self) {
        let stamp = tokio::fs::metadata(&self.path).await.ok().map(|metadata| Stamp::of(&metadata));
        if self.state.lock().stamp == stamp {
            return;
        }
        let text = tokio::fs::read_to_string(&self.path).await;
        if text.is_ok() {
            // What could not be read is looked at again, though it stays the same.
            self.state.lock().stamp = stamp;
        }
        match parse(&self.path, text) {
            Ok(keys) => {
                self.state.lock().keys = Arc::new(keys);
                tracing::info!(path = %self.path.display(), "token keys reloaded");
            }
            Err(error) => tracing::warn!(%error, "token keys could not be reloaded; the previous keys stay"),
        }
    }
}

fn parse(path: &Path, text: std::io::Result<String>) -> Result<KeySet, SettingsError> {
    let text = text.map_err(|error| SettingsError::Unreadable { path: path.to_owned(), error })?;
    KeySet::parse(&text, Origin::File).map_err(|error| SettingsError::Keys { path: path.to_owned(), error })
}

//! Keys in a file, reloaded when it changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockgate_core::time::Timestamp;
use parking_lot::Mutex;

use crate::keyset::{KeySet, Origin};
use crate::settings::SettingsError;

/// A changed file is noticed within this time; checking for each token would cost a system call each.
const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(crate) struct FileKeys {
    path: PathBuf,
    state: Mutex<KeyFileState>,
}

struct KeyFileState {
    keys: Arc<KeySet>,
    /// The stamp of the version that was read last, valid or not; None if the file was missing.
    stamp: Option<Stamp>,
    looked_at: Option<Timestamp>,
}

/// Distinguishes the versions of a file.
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
    /// Reads the file, so that a mistake shows when the server starts and not with the first token.
    pub(crate) fn open(path: PathBuf) -> Result<Self, SettingsError> {
        // The stamp is taken before the content: a change in between is then noticed later instead of never.
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

    /// Also checks after the clock was set back.
    fn take_turn(&self, now: Timestamp) -> bool {
        let mut state = self.state.lock();
        let is_recent = |at: Timestamp| at <= now && now.since(at) < LOOK_EVERY;
        if state.looked_at.is_some_and(is_recent) {
            return false;
        }
        state.looked_at = Some(now);
        true
    }

    /// A missing or invalid file changes nothing: the previous keys stay valid.
    async fn look(&self) {
        let stamp = tokio::fs::metadata(&self.path).await.ok().map(|metadata| Stamp::of(&metadata));
        if self.state.lock().stamp == stamp {
            return;
        }
        let text = tokio::fs::read_to_string(&self.path).await;
        if text.is_ok() {
            // A file that could not be read keeps its old stamp, so that it is tried again even if it does not change.
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

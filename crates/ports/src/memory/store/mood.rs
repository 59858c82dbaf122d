//! How the memory Store answers those who ask whether it is well: it cannot be ill by itself, and its users must see that.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::ids::JobId;
use lockgate_core::job::JobState;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::MemoryStore;
use crate::store::{Change, StoreError};

/// What [`check`](crate::Upkeep::check) answers. Other calls are not concerned.
#[derive(Clone, Debug, Default)]
pub enum Mood {
    #[default]
    Well,
    Refuses(StoreError),
    /// No answer until the mood changes.
    Hangs,
}

/// Shared by the clones of a Store.
#[derive(Clone, Default)]
pub(super) struct Moods {
    mood: Arc<watch::Sender<Mood>>,
    /// Nothing is dispatched while this holds.
    holds: Arc<watch::Sender<bool>>,
    hidden: Arc<Mutex<BTreeSet<JobId>>>,
}

impl MemoryStore {
    pub fn set_mood(&self, mood: Mood) {
        self.mood.mood.send_replace(mood);
    }

    /// How many wait for an answer.
    pub fn waiting(&self) -> usize {
        self.mood.mood.receiver_count()
    }

    /// Commits that dispatch something get no answer, and do nothing, until this is taken back.
    pub fn hold_dispatches(&self, hold: bool) {
        self.mood.holds.send_replace(hold);
    }

    /// How many of them wait.
    pub fn held_dispatches(&self) -> usize {
        self.mood.holds.receiver_count()
    }

    /// Whether a child of one of these is under way cannot be told from now on, as if the statement took too long.
    pub fn hide_families(&self, parents: impl IntoIterator<Item = JobId>) {
        *self.mood.hidden.lock() = parents.into_iter().collect();
    }
}

impl Moods {
    pub(super) async fn answer(&self) -> Result<(), StoreError> {
        let mut mood = self.mood.subscribe();
        // The sender lives as long as we do.
        let _ = mood.wait_for(|mood| !matches!(mood, Mood::Hangs)).await;
        match &*mood.borrow() {
            Mood::Refuses(error) => Err(error.clone()),
            Mood::Well | Mood::Hangs => Ok(()),
        }
    }

    pub(super) async fn let_go(&self, changes: &[Change]) {
        let dispatches = |change: &Change| change.transition.job.state() == JobState::Dispatched;
        if *self.holds.borrow() && changes.iter().any(dispatches) {
            // The sender lives as long as we do.
            let _ = self.holds.subscribe().wait_for(|holds| !holds).await;
        }
    }

    pub(super) fn shows(&self, lives: &[(JobId, u32)]) -> Result<(), StoreError> {
        let hidden = self.hidden.lock();
        if lives.iter().any(|(parent, _)| hidden.contains(parent)) {
            return Err(StoreError::Unavailable("no answer in time".to_owned()));
        }
        Ok(())
    }
}

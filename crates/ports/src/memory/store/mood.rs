//! How the memory Store answers those who ask whether it is well: it cannot be ill by itself, and its users must see that.

use std::sync::Arc;

use tokio::sync::watch;

use super::MemoryStore;
use crate::store::StoreError;

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
pub(super) struct Moods(Arc<watch::Sender<Mood>>);

impl MemoryStore {
    pub fn set_mood(&self, mood: Mood) {
        self.mood.0.send_replace(mood);
    }

    /// How many wait for an answer.
    pub fn waiting(&self) -> usize {
        self.mood.0.receiver_count()
    }
}

impl Moods {
    pub(super) async fn answer(&self) -> Result<(), StoreError> {
        let mut mood = self.0.subscribe();
        // The sender lives as long as we do.
        let _ = mood.wait_for(|mood| !matches!(mood, Mood::Hangs)).await;
        match &*mood.borrow() {
            Mood::Refuses(error) => Err(error.clone()),
            Mood::Well | Mood::Hangs => Ok(()),
        }
    }
}

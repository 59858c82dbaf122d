//! The guard as the ingress uses it: while it is unreachable, every message counts as ours, and the Store recognises
//! repeats.

use std::sync::Arc;

use super::guard::{DuplicateGuard, GuardAway, MessageStanding};

#[derive(Clone)]
pub(crate) struct Guarded(pub(crate) Arc<dyn DuplicateGuard>);

impl Guarded {
    pub(crate) async fn begin(&self, ids: &[String]) -> Vec<MessageStanding> {
        if ids.is_empty() {
            return Vec::new();
        }
        self.0.begin(ids).await.unwrap_or_else(|error| {
            warn(&error);
            vec![MessageStanding::Mine; ids.len()]
        })
    }

    pub(crate) async fn finish(&self, ids: &[String]) {
        if !ids.is_empty() {
            self.0.finish(ids).await.unwrap_or_else(|error| warn(&error));
        }
    }

    pub(crate) async fn release(&self, ids: &[String]) {
        if !ids.is_empty() {
            self.0.release(ids).await.unwrap_or_else(|error| warn(&error));
        }
    }
}

fn warn(error: &GuardAway) {
    tracing::warn!(%error, "duplicate guard unreachable; messages are accepted without it");
}

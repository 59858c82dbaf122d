//! Looks at how much there is and how fast it is done, for those who want to add to it.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::tick;
use crate::Inner;

const EVERY: Duration = Duration::from_millis(500);

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, EVERY).await {
        if let Err(error) = inner.meters_once().await {
            tracing::warn!(%error, "admission could not read usage; it continues with the last known usage");
        }
    }
}

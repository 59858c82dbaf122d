//! A followed resource, over gRPC or REST: one item after another, until there are no more, one cannot be had, or the server
//! closes.

use std::future::Future;
use std::sync::Arc;

use futures::Stream;
use lockgate_core::dag::{Dag, Run};
use lockgate_engine::{ApiError, JobWatch, LogWatch, RunWatch, WatchItem};
use lockgate_ports::KeptLine;
use tokio_util::sync::CancellationToken;

pub(crate) trait Followed: Send + 'static {
    type Item: Send;

    fn next_item(&mut self) -> impl Future<Output = Result<Option<Self::Item>, ApiError>> + Send;
}

/// After an error nothing follows: the client comes back with the last number it saw.
pub(crate) fn follow<W: Followed>(
    watch: W,
    closing: CancellationToken,
) -> impl Stream<Item = Result<W::Item, ApiError>> + Send + 'static {
    futures::stream::unfold(Some((watch, closing)), |state| async move {
        let (mut watch, closing) = state?;
        match closing.run_until_cancelled(watch.next_item()).await?.transpose()? {
            Ok(item) => Some((Ok(item), Some((watch, closing)))),
            Err(error) => Some((Err(error), None)),
        }
    })
}

impl Followed for JobWatch {
    type Item = WatchItem;

    async fn next_item(&mut self) -> Result<Option<WatchItem>, ApiError> {
        self.next().await
    }
}

impl Followed for LogWatch {
    type Item = KeptLine;

    async fn next_item(&mut self) -> Result<Option<KeptLine>, ApiError> {
        self.next().await
    }
}

/// What changed of a run, and its plan as it was then.
impl Followed for RunWatch {
    type Item = (Run, Arc<Dag>);

    async fn next_item(&mut self) -> Result<Option<(Run, Arc<Dag>)>, ApiError> {
        Ok(self.next().await?.map(|run| (run, self.dag().clone())))
    }
}

//! A session: the attempts that it holds, its messages, and its attachment to a server.

mod adapt;
mod attempt;
mod backoff;
mod bulkheads;
mod dial;
mod execute;
mod held;
mod journal;
mod journal_file;
mod lease;
mod link;
mod load;
mod outbox;
mod proc_text;
mod shutdown;
mod state;
#[cfg(test)]
mod tests;
mod uplink;

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1::Hello;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tonic::transport::Endpoint;

pub use self::adapt::AdaptiveSlots;
pub(crate) use self::attempt::RunningAttempt;
pub(crate) use self::bulkheads::{Bulkhead, run_all};
pub(crate) use self::dial::{Dial, Grpc};
use self::journal::{Journal, JournalWriter};
use self::lease::StopAt;
use self::link::Connector;
use self::load::Gauge;
pub(crate) use self::load::GpuLoad;
pub(crate) use self::state::SessionState;
use crate::error::WorkerError;
use crate::registry::Registry;
use crate::trace::SpanSink;

/// The checked settings of a session.
pub(crate) struct Setup {
    pub profile: Hello,
    pub registry: Registry,
    pub addresses: Vec<Endpoint>,
    pub dial: Arc<dyn Dial>,
    pub journal: Option<PathBuf>,
    pub drain_timeout: Duration,
    pub gpu_load: Option<GpuLoad>,
    pub spans: Option<SpanSink>,
    pub adaptive: Option<AdaptiveSlots>,
}

/// Runs jobs until `shutdown` is ready or the server drains the worker, then drains.
pub(crate) async fn run(setup: Setup, shutdown: impl Future<Output = ()>) -> Result<(), WorkerError> {
    let Setup { profile, registry, addresses, dial, journal, drain_timeout, gpu_load, spans, adaptive } = setup;
    let (journal, writer, restored) = match journal {
        Some(path) => {
            let (journal, writer, restored) =
                Journal::open(&path).map_err(|source| WorkerError::Journal { path, source })?;
            (Some(journal), Some(writer), restored)
        }
        None => (None, None, Vec::new()),
    };
    let session_state = SessionState::new(profile, registry, journal, restored).watched_by(spans);
    let session_state = Arc::new(session_state.timed(adaptive.is_some_and(|adaptive| adaptive.target_p95.is_some())));
    let (stop_at, stops) = watch::channel(None);
    let link = Connector { session_state: session_state.clone(), addresses, dial, stop_at };
    let watched = load::watch(session_state, Gauge::new(gpu_load), adaptive);
    let ended = attend(link, stops, watched, drain_timeout, shutdown).await;
    if let Some(writer) = writer {
        close(writer).await;
    }
    ended
}

async fn attend(
    link: Connector,
    stops: watch::Receiver<StopAt>,
    watched: impl Future<Output = ()> + Send + 'static,
    drain_timeout: Duration,
    shutdown: impl Future<Output = ()>,
) -> Result<(), WorkerError> {
    let session_state = &link.session_state.clone();
    let _last = LastOut(session_state.clone());
    let mut watchers = JoinSet::new();
    watchers.spawn(lease::watch(session_state.clone(), stops));
    watchers.spawn(watched);
    let mut links = JoinSet::new();
    links.spawn(link.keep());
    tokio::pin!(shutdown);
    tokio::select! {
        biased;
        ended = links.join_next() => return shutdown::ending(ended),
        () = &mut shutdown => {}
        () = session_state.told_to_leave() => {
            // An operator's drain has no time limit: running attempts may finish, unless the process is told to stop too.
            session_state.begin_drain();
            tokio::select! {
                biased;
                ended = links.join_next() => return shutdown::ending(ended),
                () = &mut shutdown => {}
                () = session_state.all_idle() => {}
            }
        }
    }
    shutdown::drain(session_state, &mut links, drain_timeout).await
}

async fn close(writer: JournalWriter) {
    if tokio::task::spawn_blocking(move || writer.close()).await.is_err() {
        tracing::error!("the journal could not be closed");
    }
}

/// Stops everything when the worker is dropped: no handler may run without a reporter, and no stream stay open without a
/// reader.
struct LastOut(Arc<SessionState>);

impl Drop for LastOut {
    fn drop(&mut self) {
        self.0.abort_all();
        self.0.close_stream();
    }
}

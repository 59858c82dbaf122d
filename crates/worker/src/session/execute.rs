//! Runs attempts: enforces their timeout and cancellation, and contains panics.

use std::any::Any;
use std::future::{pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use lockgate_proto::v1::result::{Interrupted, Outcome, TimedOut};
use tokio::time::{Instant, sleep};

use super::attempt::RunningAttempt;
use super::state::{EndedAttempt, SessionState};
use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;
use crate::registry::Route;

/// A result waits at most this long for others of its batch.
const FLUSH_EVERY: Duration = Duration::from_millis(1);

/// Starts attempts that have a slot.
pub(crate) fn launch(session_state: &Arc<SessionState>, batch: Vec<Arc<RunningAttempt>>) {
    if !batch.is_empty() {
        tokio::spawn(run_batch(session_state.clone(), batch));
    }
}

/// One task for a whole batch: handlers that are ready at once end here, and their results are sent together.
async fn run_batch(session_state: Arc<SessionState>, mut batch: Vec<Arc<RunningAttempt>>) {
    while !batch.is_empty() {
        let (mut begun, mut ended) = (Vec::new(), Vec::with_capacity(batch.len()));
        let mut freed = Vec::new();
        let mut flushed_at = Instant::now();
        for attempt in batch {
            match begin(&session_state, attempt) {
                Begun::Ended(one) => ended.push(one),
                Begun::Spawned(attempt) => begun.push(attempt),
            }
            if flushed_at.elapsed() >= FLUSH_EVERY {
                freed.extend(session_state.record(std::mem::take(&mut begun), std::mem::take(&mut ended)));
                flushed_at = Instant::now();
            }
        }
        freed.extend(session_state.record(begun, ended));
        batch = freed;
        tokio::task::yield_now().await;
    }
}

enum Begun {
    Ended(EndedAttempt),
    Spawned(Arc<RunningAttempt>),
}

fn begin(session_state: &Arc<SessionState>, attempt: Arc<RunningAttempt>) -> Begun {
    let Some(route) = session_state.registry.find(&attempt.assignment.topic).cloned() else {
        let error = JobError::retryable(format_args!("this worker has no handler for topic {}", attempt.assignment.topic));
        return Begun::Ended(EndedAttempt { attempt, outcome: error.into_outcome() });
    };
    attempt.start();
    let inline = route.gate.polls_inline();
    let mut work = run(session_state.clone(), route.clone(), attempt.clone()).boxed();
    if inline {
        // The waker does nothing: a future that is not ready gets a task of its own, which polls it again.
        let first = measured(&route, &mut work, &mut TaskContext::from_waker(Waker::noop()));
        if let Poll::Ready(outcome) = first {
            return Begun::Ended(EndedAttempt { attempt, outcome });
        }
        tokio::spawn(finish(session_state.clone(), attempt.clone(), work));
    } else {
        tokio::spawn(measure_and_finish(session_state.clone(), attempt.clone(), route, work));
    }
    Begun::Spawned(attempt)
}

async fn measure_and_finish(
    session_state: Arc<SessionState>,
    attempt: Arc<RunningAttempt>,
    route: Arc<Route>,
    mut work: BoxFuture<'static, Outcome>,
) {
    let first = poll_fn(|cx| Poll::Ready(measured(&route, &mut work, cx))).await;
    match first {
        Poll::Ready(outcome) => finish(session_state, attempt, std::future::ready(outcome).boxed()).await,
        Poll::Pending => finish(session_state, attempt, work).await,
    }
}

async fn finish(session_state: Arc<SessionState>, attempt: Arc<RunningAttempt>, work: BoxFuture<'static, Outcome>) {
    let outcome = work.await;
    let freed = session_state.record(Vec::new(), vec![EndedAttempt { attempt, outcome }]);
    launch(&session_state, freed);
}

fn measured(route: &Route, work: &mut BoxFuture<'static, Outcome>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
    let began = Instant::now();
    let first = work.as_mut().poll(cx);
    route.gate.note_first_poll(began.elapsed());
    first
}

/// Dropping this future drops the handler's, which is how a timeout or a cancellation ends it.
async fn run(session_state: Arc<SessionState>, route: Arc<Route>, attempt: Arc<RunningAttempt>) -> Outcome {
    let handled = AssertUnwindSafe(async {
        let payload = Payload::new(attempt.assignment.payload_json.clone());
        route.call(Context::new(attempt.clone(), session_state), payload).await
    })
    .catch_unwind();
    tokio::select! {
        biased;
        returned = handled => returned.unwrap_or_else(|panic| panicked(&*panic).into_outcome()),
        () = attempt.cut_off() => Outcome::Interrupted(Interrupted {}),
        () = time_is_up(attempt.timeout()) => Outcome::TimedOut(TimedOut {}),
    }
}

async fn time_is_up(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => sleep(timeout).await,
        None => pending().await,
    }
}

fn panicked(panic: &(dyn Any + Send)) -> JobError {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    JobError::retryable(format_args!("the handler panicked: {}", text.unwrap_or("without a text")))
}

#[cfg(test)]
mod tests {
    use lockgate_proto::v1::{Assignment, Hello, ServerMessage, WorkerMessage};

    use super::*;
    use crate::registry::Registry;

    async fn run(
        session_state: &Arc<SessionState>,
        stream: u64,
        tokens: impl Iterator<Item = String>,
    ) -> Vec<WorkerMessage> {
        let assignment = |token| Assignment { token, topic: "echo".to_owned(), ..Assignment::default() };
        let message = ServerMessage { assignments: tokens.map(assignment).collect(), ..ServerMessage::default() };
        launch(session_state, session_state.receive(message));
        session_state.all_idle().await;
        let next = || match session_state.poll_outgoing(stream, &mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// Time is paused, so no first poll is slow and no result waits too long.
    #[tokio::test(start_paused = true)]
    async fn a_batch_of_handlers_that_are_ready_at_once_leaves_in_one_message_without_starts() {
        let mut registry = Registry::default();
        registry.insert("echo".to_owned(), Route::new(|_, payload| async { Ok(payload) }));
        let profile = Hello { slots: 500, ..Hello::default() };
        let session_state = Arc::new(SessionState::new(profile, registry, None, Vec::new()));
        let stream = session_state.open_stream();
        session_state.welcomed();
        run(&session_state, stream, ["measured".to_owned()].into_iter()).await;
        let messages = run(&session_state, stream, (0..500).map(|n| n.to_string())).await;
        let [message] = messages.as_slice() else { panic!("one message, not {}", messages.len()) };
        assert_eq!((message.results.len(), message.starts.len()), (500, 0));
    }
}

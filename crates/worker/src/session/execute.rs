//! Runs attempts: within their time, cut off when told so, and without letting a panic out.

use std::any::Any;
use std::future::{pending, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_proto::v1::result::{Interrupted, Outcome, TimedOut};
use tokio::time::{Instant, sleep};

use super::attempt::Attempt;
use super::crew::{Crew, Ended};
use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;
use crate::registry::Route;

/// Results wait for their neighbours of the same batch at most this long.
const FLUSH_EVERY: Duration = Duration::from_millis(1);

/// Starts attempts that have a slot.
pub(crate) fn launch(crew: &Arc<Crew>, batch: Vec<Arc<Attempt>>) {
    if !batch.is_empty() {
        tokio::spawn(run_batch(crew.clone(), batch));
    }
}

/// One task for a whole batch: handlers that are ready at once end here, and their results leave together.
async fn run_batch(crew: Arc<Crew>, mut batch: Vec<Arc<Attempt>>) {
    while !batch.is_empty() {
        let (mut begun, mut ended) = (Vec::new(), Vec::with_capacity(batch.len()));
        let mut freed = Vec::new();
        let mut flushed_at = Instant::now();
        for attempt in batch {
            match begin(&crew, attempt) {
                Begun::Ended(one) => ended.push(one),
                Begun::Spawned(attempt) => begun.push(attempt),
            }
            if flushed_at.elapsed() >= FLUSH_EVERY {
                freed.extend(crew.record(std::mem::take(&mut begun), std::mem::take(&mut ended)));
                flushed_at = Instant::now();
            }
        }
        freed.extend(crew.record(begun, ended));
        batch = freed;
        tokio::task::yield_now().await;
    }
}

enum Begun {
    Ended(Ended),
    Spawned(Arc<Attempt>),
}

fn begin(crew: &Arc<Crew>, attempt: Arc<Attempt>) -> Begun {
    let Some(route) = crew.registry.find(&attempt.assignment.topic).cloned() else {
        let error = JobError::retryable(format_args!("this worker has no handler for topic {}", attempt.assignment.topic));
        return Begun::Ended(Ended { attempt, outcome: error.into_outcome() });
    };
    attempt.start();
    let inline = route.gate.polls_inline();
    let mut work = run(crew.clone(), route.clone(), attempt.clone()).boxed();
    if inline {
        // The waker does nothing: a future that is not ready is polled again by the task it gets.
        let first = measured(&route, &mut work, &mut TaskContext::from_waker(Waker::noop()));
        if let Poll::Ready(outcome) = first {
            return Begun::Ended(Ended { attempt, outcome });
        }
        tokio::spawn(finish(crew.clone(), attempt.clone(), work));
    } else {
        tokio::spawn(measure_and_finish(crew.clone(), attempt.clone(), route, work));
    }
    Begun::Spawned(attempt)
}

async fn measure_and_finish(
    crew: Arc<Crew>,
    attempt: Arc<Attempt>,
    route: Arc<Route>,
    mut work: BoxFuture<'static, Outcome>,
) {
    let first = poll_fn(|cx| Poll::Ready(measured(&route, &mut work, cx))).await;
    match first {
        Poll::Ready(outcome) => finish(crew, attempt, std::future::ready(outcome).boxed()).await,
        Poll::Pending => finish(crew, attempt, work).await,
    }
}

async fn finish(crew: Arc<Crew>, attempt: Arc<Attempt>, work: BoxFuture<'static, Outcome>) {
    let outcome = work.await;
    let freed = crew.record(Vec::new(), vec![Ended { attempt, outcome }]);
    launch(&crew, freed);
}

fn measured(route: &Route, work: &mut BoxFuture<'static, Outcome>, cx: &mut TaskContext<'_>) -> Poll<Outcome> {
    let began = Instant::now();
    let first = work.as_mut().poll(cx);
    route.gate.note_first_poll(began.elapsed());
    first
}

/// Leaving this future drops the handler's: that is how a timeout or a cut-off ends it.
async fn run(crew: Arc<Crew>, route: Arc<Route>, attempt: Arc<Attempt>) -> Outcome {
    let handled = AssertUnwindSafe(async {
        let payload = Payload::new(attempt.assignment.payload_json.clone());
        route.call(Context::new(attempt.clone(), crew), payload).await
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

    async fn run(crew: &Arc<Crew>, stream: u64, tokens: impl Iterator<Item = String>) -> Vec<WorkerMessage> {
        let assignment = |token| Assignment { token, topic: "echo".to_owned(), ..Assignment::default() };
        let message = ServerMessage { assignments: tokens.map(assignment).collect(), ..ServerMessage::default() };
        launch(crew, crew.receive(message));
        crew.all_idle().await;
        let next = || match crew.poll_outgoing(stream, &mut TaskContext::from_waker(Waker::noop())) {
            Poll::Ready(message) => message,
            Poll::Pending => None,
        };
        std::iter::from_fn(next).collect()
    }

    /// Time stands still, so no first poll is slow and no result waits too long.
    #[tokio::test(start_paused = true)]
    async fn a_batch_of_handlers_that_are_ready_at_once_leaves_in_one_message_without_starts() {
        let mut registry = Registry::default();
        registry.insert("echo".to_owned(), Route::new(|_, payload| async { Ok(payload) }));
        let profile = Hello { slots: 500, ..Hello::default() };
        let crew = Arc::new(Crew::new(profile, registry, None, Vec::new()));
        let stream = crew.open_stream();
        crew.welcomed();
        run(&crew, stream, ["measured".to_owned()].into_iter()).await;
        let messages = run(&crew, stream, (0..500).map(|n| n.to_string())).await;
        let [message] = messages.as_slice() else { panic!("one message, not {}", messages.len()) };
        assert_eq!((message.results.len(), message.starts.len()), (500, 0));
    }
}

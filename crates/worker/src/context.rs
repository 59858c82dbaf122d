//! The context of a handler call: facts about the attempt, and messages to the server while it runs.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::children::Gathered;
use crate::session::{RunningAttempt, SessionState};
use crate::trace;
use lockgate_tls::grpc::BearerChannel;

/// Passed to every handler call. Cheap to clone.
#[derive(Clone)]
pub struct Context {
    attempt: Arc<RunningAttempt>,
    session_state: Arc<SessionState>,
}

impl Context {
    pub(crate) fn new(attempt: Arc<RunningAttempt>, session_state: Arc<SessionState>) -> Self {
        Self { attempt, session_state }
    }

    pub fn job_id(&self) -> &str {
        &self.attempt.assignment.job_id
    }

    /// The number of this attempt, from 1. It grows over retries, losses and replays, and never starts again.
    pub fn attempt(&self) -> u32 {
        self.attempt.assignment.attempt
    }

    pub fn topic(&self) -> &str {
        &self.attempt.assignment.topic
    }

    pub fn tenant(&self) -> &str {
        &self.attempt.assignment.tenant
    }

    pub fn trace_id(&self) -> &str {
        &self.attempt.assignment.trace_id
    }

    /// The W3C trace context for the handler's own calls: send it as the header `traceparent`. None if the job is not
    /// traced.
    pub fn traceparent(&self) -> Option<String> {
        trace::context(&self.attempt.assignment, self.session_state.writes_spans()).map(|context| context.to_string())
    }

    pub fn labels(&self) -> &HashMap<String, String> {
        &self.attempt.assignment.labels
    }

    pub fn env(&self) -> &HashMap<String, String> {
        &self.attempt.assignment.env
    }

    /// Whether policy lets this attempt open connections. Built-in handlers obey it; yours should too.
    pub fn may_use_network(&self) -> bool {
        self.attempt.assignment.network != Some(false)
    }

    /// Whether policy lets this attempt start programs.
    pub fn may_exec(&self) -> bool {
        self.attempt.assignment.exec != Some(false)
    }

    /// Present if the job has waited for its children and was called again, in this life; also in later attempts, if this
    /// one fails or is lost.
    pub fn gathered(&self) -> Option<Gathered> {
        let assignment = &self.attempt.assignment;
        let gathered = Gathered { rounds: assignment.gathered, partial: assignment.gathered_partly };
        (gathered.rounds > 0).then_some(gathered)
    }

    pub(crate) fn token(&self) -> &str {
        self.attempt.token()
    }

    pub(crate) fn channel(&self) -> Option<BearerChannel> {
        self.session_state.channel()
    }

    /// Reports progress to watchers. Only the latest unsent report is sent.
    pub fn progress(&self, percent: u32, message: impl Into<String>) {
        self.session_state.progress(&self.attempt, percent, message.into());
    }

    /// Adds a line to the job's log. Lines that the connection cannot carry are dropped, and the log says how many.
    pub fn log(&self, line: impl Into<String>) {
        self.session_state.log(&self.attempt, line.into());
    }

    /// Whether the attempt no longer counts. A handler that continues is dropped a second later.
    pub fn is_cancelled(&self) -> bool {
        self.attempt.is_cancelled()
    }

    /// Waits until the attempt no longer counts.
    pub async fn cancelled(&self) {
        self.attempt.cancelled().await;
    }

    /// Leaves this attempt out of the worker's inventory, as if the worker had forgotten it: the server then declares it
    /// lost and starts another. For drills and load tests.
    pub fn hide_from_inventory(&self) {
        self.attempt.hide();
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("job_id", &self.job_id())
            .field("attempt", &self.attempt())
            .field("topic", &self.topic())
            .finish_non_exhaustive()
    }
}

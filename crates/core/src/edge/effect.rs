//! What the engine does after the edge has decided.

use std::sync::Arc;

use super::ToWorker;
use crate::ids::{AttemptToken, JobId, SessionId};
use crate::job::Job;
use crate::time::Timestamp;

/// One thing to do. The engine performs the effects of one event in their order.
///
/// The first three are performed under the lock of the edge: two decisions about one worker must reach its stream in the order in
/// which they were made, or it would be told to stop an attempt that it gets only afterwards. The last six ask the Store, so they
/// may fail; the worker's next beat or the next round leads to them again.
#[derive(Debug)]
pub enum EdgeEffect {
    /// Put a message into the stream of a session. A stream that takes no more is reported with
    /// [`EdgeState::on_stream_ended`](super::EdgeState::on_stream_ended).
    Tell { session: SessionId, message: ToWorker },
    /// End the stream of a session; its worker attaches again.
    CloseStream { session: SessionId },
    /// Other processes should hear how a worker fares before the next beat: see [`EdgeState::news`](super::EdgeState::news).
    RingNews,

    /// A place became free or a worker came.
    WakeDispatch,
    /// The worker has nothing of these attempts any more, so the limits they took are free.
    FreeLimits(Vec<AttemptToken>),
    /// A start was reported for the first time.
    Started { job: Arc<Job>, at: Timestamp },
    /// A worker changed how many jobs it runs at once.
    Resized { grown: bool },
    /// Watchers of these jobs should look again.
    RingJobs(Vec<JobId>),

    /// The worker has let go of these attempts: runs that wait for their end hear of it, then
    /// [`EdgeState::on_over`](super::EdgeState::on_over).
    LetGo { session: SessionId, tokens: Vec<AttemptToken> },
    /// Like `LetGo`, for attempts that their session no longer lists.
    Left(Vec<LeftAttempt>),
    /// The worker took these attempts and does not have them any more.
    Lose { session: SessionId, epoch: u64, jobs: Vec<Arc<Job>> },
    /// These attempts never arrived: those that the policy in force allows are sent again. The answer is
    /// [`EdgeState::on_resent`](super::EdgeState::on_resent).
    Resend { session: SessionId, epoch: u64, jobs: Vec<Arc<Job>> },
    /// Everything that follows from a beat is done: [`EdgeState::on_beat_done`](super::EdgeState::on_beat_done).
    AckBeat { session: SessionId, epoch: u64, number: u64 },
    /// The worker is gone: its session is closed in the Store and what it held is lost.
    Close { session: SessionId, epoch: u64, how: Departed },
}

/// How a worker went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departed {
    /// It was drained, had nothing left, and went.
    Left,
    /// It was not heard of for too long.
    Silent,
}

/// An attempt that its worker has let go of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAttempt {
    pub token: AttemptToken,
    /// Its job, if a run waits for its end.
    pub job_of_run: Option<JobId>,
}

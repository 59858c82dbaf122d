//! The writing tasks, which implement group commit.

mod births;
mod group;
mod moves;
mod plan;
mod proofs;
mod run_calls;
mod run_plan;
mod sides;
mod steps;
mod taken;
mod transaction;

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lockgate_core::ids::JobSeq;
use lockgate_ports::store::RunRefusal;
use lockgate_ports::{ChangeError, StoreError, in_parts};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;

pub(crate) use sides::{KEEP_AUDIT, audit_columns};

use crate::encoded_change::EncodedChange;
use crate::encoded_run_step::{self, EncodedRunStep};
use crate::pool::Connector;
use steps::StepResult;

/// The most weight of one transaction. Bounds how long the first caller of a group waits for the last one's statements.
const GROUP_WEIGHT_MAX: usize = 4_096;
/// The most weight that may wait. Beyond it calls are refused: the server is behind, and a longer queue would only delay the
/// refusal.
const QUEUE_WEIGHT_MAX: usize = 65_536;

pub(super) type ChangeResults = Vec<Result<JobSeq, ChangeError>>;

/// A call that waits for its transaction.
struct WaitingCall {
    work: GroupedWork,
    weight: usize,
    since: Instant,
    _room: OwnedSemaphorePermit,
}

enum GroupedWork {
    Jobs(CallPart<EncodedChange, ChangeResults>),
    Runs(CallPart<EncodedRunStep, Vec<StepResult>>),
}

struct CallPart<S, A> {
    sheets: Arc<Vec<S>>,
    /// The part of the call's items that this transaction writes.
    part: Range<usize>,
    reply: oneshot::Sender<Result<A, StoreError>>,
}

impl<S, A> CallPart<S, A> {
    fn sheets(&self) -> &[S] {
        &self.sheets[self.part.clone()]
    }
}

impl WaitingCall {
    fn jobs(&self) -> Option<&[EncodedChange]> {
        match &self.work {
            GroupedWork::Jobs(asked) => Some(asked.sheets()),
            GroupedWork::Runs(_) => None,
        }
    }

    fn runs(&self) -> Option<&[EncodedRunStep]> {
        match &self.work {
            GroupedWork::Runs(asked) => Some(asked.sheets()),
            GroupedWork::Jobs(_) => None,
        }
    }

    fn fail(self, error: &StoreError) {
        // The send fails if the caller has gone, which is not an error.
        match self.work {
            GroupedWork::Jobs(asked) => drop(asked.reply.send(Err(error.clone()))),
            GroupedWork::Runs(asked) => drop(asked.reply.send(Err(error.clone()))),
        }
    }
}

struct WriteQueue {
    tasks: Mutex<VecDeque<WaitingCall>>,
    room: Arc<Semaphore>,
    bell: Notify,
    closed: AtomicBool,
}

/// A handle to the writing tasks. When it is dropped they write all accepted calls, and end.
pub(crate) struct WriterHandle {
    queue: Arc<WriteQueue>,
    connector: Arc<Connector>,
}

impl WriterHandle {
    pub(crate) fn start(connector: &Arc<Connector>) -> Self {
        let room = Arc::new(Semaphore::new(QUEUE_WEIGHT_MAX));
        let queue = WriteQueue { tasks: Mutex::default(), room, bell: Notify::new(), closed: AtomicBool::new(false) };
        let queue = Arc::new(queue);
        for _ in 0..connector.options.writers.max(1) {
            tokio::spawn(group::CommitGroup::new(Arc::clone(connector)).serve(Arc::clone(&queue)));
        }
        Self { queue, connector: Arc::clone(connector) }
    }

    pub(crate) async fn commit(&self, sheets: Vec<EncodedChange>) -> Result<ChangeResults, StoreError> {
        // The caller keeps a reference, so that it and not the writing task frees the memory.
        let sheets = Arc::new(sheets);
        let commit = |part: Range<usize>| {
            let weight = sheets[part.clone()].iter().map(EncodedChange::weight).sum();
            self.ask(Arc::clone(&sheets), part, weight, GroupedWork::Jobs)
        };
        in_parts(sheets.len(), commit, |_, why| Err(ChangeError::Refused(why))).await
    }

    pub(crate) async fn advance(&self, sheets: Vec<EncodedRunStep>) -> Result<Vec<StepResult>, StoreError> {
        // The caller keeps a reference, so that it and not the writing task frees the memory.
        let sheets = Arc::new(sheets);
        let advance = |part: Range<usize>| {
            let weight = sheets[part.clone()].iter().map(encoded_run_step::weight).sum();
            self.ask(Arc::clone(&sheets), part, weight, GroupedWork::Runs)
        };
        in_parts(sheets.len(), advance, |_, why| Err(RunRefusal::Refused(why))).await
    }

    async fn ask<S, A>(
        &self,
        sheets: Arc<Vec<S>>,
        part: Range<usize>,
        weight: usize,
        work: impl FnOnce(CallPart<S, A>) -> GroupedWork,
    ) -> Result<A, StoreError> {
        let weight = weight.min(QUEUE_WEIGHT_MAX);
        let since = Instant::now();
        let room = Arc::clone(&self.queue.room).acquire_many_owned(u32::try_from(weight).unwrap_or(u32::MAX));
        let room = tokio::time::timeout(self.connector.options.deadline, room).await;
        let crowded = || StoreError::Unavailable("too many changes wait to be written; try again".to_owned());
        let room = room.map_err(|_| crowded())?.map_err(|_| crowded())?;
        let (reply, answer) = oneshot::channel();
        let work = work(CallPart { sheets, part, reply });
        self.queue.push(WaitingCall { work, weight, since, _room: room });
        // The task died while it held the work, so the outcome is unknown.
        answer.await.unwrap_or_else(|_| Err(StoreError::UnknownOutcome("a writing task has died".to_owned())))
    }
}

impl Drop for WriterHandle {
    fn drop(&mut self) {
        self.queue.closed.store(true, Ordering::Release);
        self.queue.bell.notify_one();
    }
}

impl WriteQueue {
    fn push(&self, task: WaitingCall) {
        self.tasks.lock().push_back(task);
        self.bell.notify_one();
    }

    /// The calls that have arrived, up to the weight of one transaction. None once the queue is closed.
    async fn next(&self) -> Option<Vec<WaitingCall>> {
        loop {
            let group = self.take();
            if !group.is_empty() {
                return Some(group);
            }
            if self.closed.load(Ordering::Acquire) {
                // `notify_one` wakes a single task, so the next waiting task must be woken too.
                self.bell.notify_one();
                return None;
            }
            self.bell.notified().await;
        }
    }

    fn take(&self) -> Vec<WaitingCall> {
        let mut tasks = self.tasks.lock();
        let (mut group, mut weight) = (Vec::new(), 0);
        while weight < GROUP_WEIGHT_MAX
            && let Some(task) = tasks.pop_front()
        {
            weight += task.weight;
            group.push(task);
        }
        if !tasks.is_empty() {
            self.bell.notify_one();
        }
        group
    }
}

//! The writing tasks: group commit.

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

use crate::pool::Door;
use crate::run_sheet::RunSheet;
use crate::sheet::Sheet;
use steps::Stepped;

/// Weight of one transaction. Bounds how long the first caller of a group waits for the last one's statements.
const GROUP_WEIGHT_MAX: usize = 4_096;
/// Weight of everything that waits. More is refused: the server is behind, and a longer queue would only be later.
const QUEUE_WEIGHT_MAX: usize = 65_536;

pub(super) type Results = Vec<Result<JobSeq, ChangeError>>;

/// One call, waiting for its transaction.
struct Task {
    work: Work,
    weight: usize,
    since: Instant,
    _room: OwnedSemaphorePermit,
}

enum Work {
    Jobs(Asked<Sheet, Results>),
    Runs(Asked<RunSheet, Vec<Stepped>>),
}

struct Asked<S, A> {
    sheets: Arc<Vec<S>>,
    /// Which of them.
    part: Range<usize>,
    reply: oneshot::Sender<Result<A, StoreError>>,
}

impl<S, A> Asked<S, A> {
    fn sheets(&self) -> &[S] {
        &self.sheets[self.part.clone()]
    }
}

impl Task {
    fn jobs(&self) -> Option<&[Sheet]> {
        match &self.work {
            Work::Jobs(asked) => Some(asked.sheets()),
            Work::Runs(_) => None,
        }
    }

    fn runs(&self) -> Option<&[RunSheet]> {
        match &self.work {
            Work::Runs(asked) => Some(asked.sheets()),
            Work::Jobs(_) => None,
        }
    }

    fn fail(self, error: &StoreError) {
        // A caller that went away does not want its answer.
        match self.work {
            Work::Jobs(asked) => drop(asked.reply.send(Err(error.clone()))),
            Work::Runs(asked) => drop(asked.reply.send(Err(error.clone()))),
        }
    }
}

struct Queue {
    tasks: Mutex<VecDeque<Task>>,
    room: Arc<Semaphore>,
    bell: Notify,
    closed: AtomicBool,
}

/// The door to the writing tasks. When it is dropped they write what was accepted, and end.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    door: Arc<Door>,
}

impl Writer {
    pub(crate) fn start(door: &Arc<Door>) -> Self {
        let room = Arc::new(Semaphore::new(QUEUE_WEIGHT_MAX));
        let queue = Queue { tasks: Mutex::default(), room, bell: Notify::new(), closed: AtomicBool::new(false) };
        let queue = Arc::new(queue);
        for _ in 0..door.options.writers.max(1) {
            tokio::spawn(group::Desk::new(Arc::clone(door)).serve(Arc::clone(&queue)));
        }
        Self { queue, door: Arc::clone(door) }
    }

    pub(crate) async fn commit(&self, sheets: Vec<Sheet>) -> Result<Results, StoreError> {
        // Kept here too, so that the writing task does not have to free it.
        let sheets = Arc::new(sheets);
        let commit = |part: Range<usize>| {
            let weight = sheets[part.clone()].iter().map(Sheet::weight).sum();
            self.ask(Arc::clone(&sheets), part, weight, Work::Jobs)
        };
        in_parts(sheets.len(), commit, |_, why| Err(ChangeError::Refused(why))).await
    }

    pub(crate) async fn advance(&self, sheets: Vec<RunSheet>) -> Result<Vec<Stepped>, StoreError> {
        // Kept here too, so that the writing task does not have to free it.
        let sheets = Arc::new(sheets);
        let advance = |part: Range<usize>| {
            let weight = sheets[part.clone()].iter().map(RunSheet::weight).sum();
            self.ask(Arc::clone(&sheets), part, weight, Work::Runs)
        };
        in_parts(sheets.len(), advance, |_, why| Err(RunRefusal::Refused(why))).await
    }

    async fn ask<S, A>(
        &self,
        sheets: Arc<Vec<S>>,
        part: Range<usize>,
        weight: usize,
        work: impl FnOnce(Asked<S, A>) -> Work,
    ) -> Result<A, StoreError> {
        let weight = weight.min(QUEUE_WEIGHT_MAX);
        let since = Instant::now();
        let room = Arc::clone(&self.queue.room).acquire_many_owned(u32::try_from(weight).unwrap_or(u32::MAX));
        let room = tokio::time::timeout(self.door.options.deadline, room).await;
        let crowded = || StoreError::Unavailable("too many changes wait to be written; try again".to_owned());
        let room = room.map_err(|_| crowded())?.map_err(|_| crowded())?;
        let (reply, answer) = oneshot::channel();
        let work = work(Asked { sheets, part, reply });
        self.queue.push(Task { work, weight, since, _room: room });
        // The task died with the work in its hands: nobody knows how far it came.
        answer.await.unwrap_or_else(|_| Err(StoreError::UnknownOutcome("a writing task has died".to_owned())))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.closed.store(true, Ordering::Release);
        self.queue.bell.notify_one();
    }
}

impl Queue {
    fn push(&self, task: Task) {
        self.tasks.lock().push_back(task);
        self.bell.notify_one();
    }

    /// What has arrived, up to the weight of one transaction. None when nothing will come any more.
    async fn next(&self) -> Option<Vec<Task>> {
        loop {
            let group = self.take();
            if !group.is_empty() {
                return Some(group);
            }
            if self.closed.load(Ordering::Acquire) {
                // The next one who waits must hear it too.
                self.bell.notify_one();
                return None;
            }
            self.bell.notified().await;
        }
    }

    fn take(&self) -> Vec<Task> {
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

//! Tasks for the writing thread, and the channel for their answers.

use lockgate_ports::StoreError;
use tokio::sync::oneshot;

use super::WriteTx;
use crate::error::StatementError;

pub(super) trait TxTask: Send {
    /// The task's weight in a transaction, in changes.
    fn weight(&self) -> usize;

    /// May run again after a rollback.
    fn run(&mut self, tx: &mut WriteTx<'_>) -> Result<(), StatementError>;

    /// Called once, when the transaction is durable or has failed.
    fn answer(self: Box<Self>, outcome: Result<(), StoreError>);
}

pub(super) struct QueuedWrite<T, F> {
    weight: usize,
    work: F,
    value: Option<T>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> QueuedWrite<T, F> {
    pub(super) fn new(weight: usize, work: F, reply: oneshot::Sender<Result<T, StoreError>>) -> Self {
        Self { weight, work, value: None, reply }
    }
}

impl<T: Send, F: FnMut(&mut WriteTx<'_>) -> Result<T, StatementError> + Send> TxTask for QueuedWrite<T, F> {
    fn weight(&self) -> usize {
        self.weight
    }

    fn run(&mut self, tx: &mut WriteTx<'_>) -> Result<(), StatementError> {
        self.value = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<(), StoreError>) {
        let never_run = || StoreError::Unavailable("the work was not done".to_owned());
        let Self { value, reply, work, .. } = *self;
        // Dropped before the answer, so that data shared with the caller is freed by the caller's thread.
        drop(work);
        // The send fails if the caller has gone, which is not an error.
        let _ = reply.send(outcome.and_then(|()| value.ok_or_else(never_run)));
    }
}

//! Workers that are spoken with by messages, and have no stream whose end would tell of theirs.
//!
//! Their sessions are sessions like all others. Their silence is borne for longer, because messages may be late or lost, and their
//! results may come to another process than the one that holds them.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::edge::{Acknowledged, ResultReport};
use lockgate_core::ids::{AttemptToken, SessionId};
use lockgate_ports::SessionRow;

use crate::error::ApiError;
use crate::looks::Looks;
use crate::service::to_the_end;
use crate::{Engine, Inner};

impl Engine {
    /// Takes results that came without a stream. Returns after the commit, with what each came to; one that is not named is not
    /// decided yet, and must come again.
    pub async fn report(
        &self,
        session: &SessionId,
        results: Vec<ResultReport>,
    ) -> Result<Vec<(AttemptToken, Acknowledged)>, ApiError> {
        let (inner, session) = (Arc::clone(&self.inner), session.clone());
        to_the_end(async move { inner.take_posted(&session, &results).await }).await?
    }

    /// Messages of workers cannot be received now, or could not a moment ago: their silence proves nothing.
    pub fn deaf(&self) {
        self.inner.edge.ask(|edge, now| edge.on_deaf(now));
        self.inner.detached.forget();
        self.inner.unregistered.forget();
    }
}

impl Inner {
    async fn take_posted(
        &self,
        session: &SessionId,
        results: &[ResultReport],
    ) -> Result<Vec<(AttemptToken, Acknowledged)>, ApiError> {
        // No session has the epoch 0: what is held elsewhere is read from the Store.
        let epoch = self.edge.look(|edge| edge.epoch(session)).unwrap_or(0);
        self.hear(session, epoch);
        let committed = self.commit_results(session, epoch, results).await;
        if let Err(error) = &committed {
            self.health.cut_off(error);
        }
        Ok(committed?)
    }
}

/// Sessions that no edge hears, and whose workers are given time to attach again.
#[derive(Default)]
pub(crate) struct DetachedSessions(Looks<(SessionId, u64)>);

impl DetachedSessions {
    /// Those of `rows` whose time is over: each has what it was promised when it attached, or `usual` if its row says nothing.
    /// `spent` is how long they were unheard before they were seen here, at least. Looks that are much further apart than `every`
    /// begin anew: a process that was stopped in between received no messages.
    pub(crate) fn over(&self, rows: Vec<SessionRow>, every: Duration, spent: Duration, usual: Duration) -> Vec<SessionRow> {
        let ages = self.0.ages(rows.iter().map(|row| (row.session.clone(), row.epoch)), every * 3);
        let over = rows.into_iter().zip(ages).filter(|(row, age)| {
            // One that is seen for the first time may be attaching elsewhere at this moment.
            age.is_some_and(|age| age + spent >= row.profile.lost_after(usual))
        });
        over.map(|(row, _)| row).collect()
    }

    pub(crate) fn forget(&self) {
        self.0.forget();
    }
}

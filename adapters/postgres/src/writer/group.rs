//! A writing task: takes groups of calls, runs their transactions, and answers every caller.

use std::sync::Arc;

use lockgate_ports::{ChangeError, StoreError};
use tokio::time::{Instant, timeout_at};

use super::plan::WritePlan;
use super::run_plan::RunPlan;
use super::steps::StepResult;
use super::taken::{InTheWay, owners};
use super::transaction::{ChangeOutcome, Plans, TotalsShard, Transaction, TxOutcome, TxStop};
use super::{ChangeResults, GroupedWork, WaitingCall, WriteQueue};
use crate::conn::Conn;
use crate::encoded_change::EncodedChange;
use crate::error::StatementError;
use crate::pool::Connector;
use crate::retry::{TRIES_MAX, repeat_after};
use crate::row::get;

/// The number of rows in `totals`.
pub(crate) const SHARDS: i64 = 64;

pub(super) struct CommitGroup {
    connector: Arc<Connector>,
    conn: Option<Conn>,
    /// The task's row of `totals`, assigned by the server so that two tasks seldom share one.
    shard: Option<i64>,
    /// The guard of that row; None at first, and after another process raised it.
    guard: Option<i64>,
}

/// Why a transaction failed, or has an unknown outcome.
enum TxFailure {
    /// Rolled back before COMMIT was sent.
    Fault(StatementError),
    /// The answer for every caller is known already.
    Known(StoreError),
}

/// The answers for every caller of a group, in order.
struct GroupAnswers {
    jobs: Vec<Result<ChangeResults, StoreError>>,
    runs: Vec<Vec<StepResult>>,
}

impl CommitGroup {
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        Self { connector, conn: None, shard: None, guard: None }
    }

    pub(super) async fn serve(mut self, queue: Arc<WriteQueue>) {
        while let Some(group) = queue.next().await {
            self.settle(group).await;
        }
    }

    /// Runs one transaction for the whole group. If the fault of one call rolled it back, each call gets a transaction of
    /// its own, so that none fails because of another.
    async fn settle(&mut self, group: Vec<WaitingCall>) {
        let group = self.still_wanted(group);
        let Some(oldest) = group.iter().map(|task| task.since).min() else { return };
        let deadline = oldest + self.connector.options.deadline;
        match self.commit(&group, deadline).await {
            Err(TxFailure::Fault(fault)) if group.len() > 1 && fault.is_of_one_call() => {
                for task in group {
                    let alone = [task];
                    let answers = self.commit(&alone, Instant::now() + self.connector.options.deadline).await;
                    let [task] = alone;
                    answer(vec![task], answers);
                }
            }
            answers => answer(group, answers),
        }
    }

    /// Refuses calls that have waited too long to be answered in time. Nothing of them was written, so the refusal is
    /// certain.
    fn still_wanted(&self, group: Vec<WaitingCall>) -> Vec<WaitingCall> {
        let patience = self.connector.options.deadline / 2;
        let (fresh, late): (Vec<WaitingCall>, Vec<WaitingCall>) =
            group.into_iter().partition(|task| task.since.elapsed() < patience);
        let error = StoreError::Unavailable("the database did not keep up; try again".to_owned());
        answer(late, Err(TxFailure::Known(error)));
        fresh
    }

    async fn commit(&mut self, group: &[WaitingCall], deadline: Instant) -> Result<GroupAnswers, TxFailure> {
        let plan = WritePlan::of(group.iter().filter_map(WaitingCall::jobs));
        let run_plan = RunPlan::of(group.iter().filter_map(WaitingCall::runs));
        let plans = Plans { jobs: &plan, runs: &run_plan };
        let mut tries = 0;
        loop {
            let fault = match self.attempt(plans, group, deadline).await {
                Err(TxFailure::Fault(fault)) => fault,
                settled => return settled,
            };
            let outdated = fault.is_outdated();
            if outdated {
                self.guard = None;
            }
            if !(outdated || fault.wants_repeating()) || tries == TRIES_MAX || Instant::now() >= deadline {
                return Err(TxFailure::Fault(fault));
            }
            tokio::time::sleep(repeat_after(tries)).await;
            tries += 1;
        }
    }

    async fn attempt(
        &mut self,
        plans: Plans<'_, '_>,
        group: &[WaitingCall],
        deadline: Instant,
    ) -> Result<GroupAnswers, TxFailure> {
        let connected = timeout_at(deadline, self.connected()).await.unwrap_or(Err(StatementError::TimedOut));
        let (mut conn, place) = connected.map_err(TxFailure::Fault)?;
        conn.busy = true;
        let mut commit_sent = false;
        let transaction = Transaction::new(&mut conn, &self.connector.options, place, plans, &mut commit_sent).run();
        let stop = match timeout_at(deadline, transaction).await {
            Ok(Ok(TxOutcome { answers, stepped, rows })) => {
                self.connector.tally.committed(rows);
                let calls = group.iter().filter_map(WaitingCall::jobs).count();
                let jobs = self.results(plans.jobs, calls, &answers, &mut conn, deadline).await;
                conn.busy = false;
                self.conn = Some(conn);
                return Ok(GroupAnswers { jobs, runs: by_call(plans.runs, stepped) });
            }
            Ok(Err(stop)) => stop,
            Err(_) if commit_sent => TxStop::Commit(StatementError::TimedOut),
            Err(_) => TxStop::Before(StatementError::TimedOut),
        };
        let (fault, known) = match stop {
            TxStop::Before(fault) => (fault, None),
            TxStop::Commit(fault) => {
                let error = fault.in_commit();
                let unknown = matches!(error, StoreError::UnknownOutcome(_));
                (fault, unknown.then_some(error))
            }
        };
        self.give_up(conn, &fault, deadline).await;
        let Some(error) = known else { return Err(TxFailure::Fault(fault)) };
        self.guard = None;
        self.connector.lose_track(place.shard);
        if let Err(fault) = timeout_at(Instant::now() + self.connector.options.deadline, self.connector.fence())
            .await
            .unwrap_or(Err(StatementError::TimedOut))
        {
            tracing::warn!(error = %fault, "commit of unknown outcome could not be fenced; it will be before the next read");
        }
        Err(TxFailure::Known(error))
    }

    async fn connected(&mut self) -> Result<(Conn, TotalsShard), StatementError> {
        let kept = self.conn.take().filter(|conn| !conn.is_closed());
        let mut conn = match kept {
            Some(conn) => conn,
            None => self.connector.open().await?,
        };
        let shard = match self.shard {
            Some(shard) => shard,
            None => {
                conn.busy = true;
                let rows = conn.rows("SELECT nextval('writer_seq')", &[]).await?;
                let number: i64 = rows.first().map_or(Ok(0), |row| get(row, 0))?;
                *self.shard.insert(number.rem_euclid(SHARDS))
            }
        };
        let guard = match self.guard {
            Some(guard) => guard,
            None => {
                conn.busy = true;
                let rows = conn.rows("SELECT guard FROM totals WHERE shard = $1", &[&shard]).await?;
                let guard = rows.first().map_or(Ok(0), |row| get(row, 0))?;
                *self.guard.insert(guard)
            }
        };
        Ok((conn, TotalsShard { shard, guard }))
    }

    /// Keeps the connection if it is usable for further transactions.
    async fn give_up(&mut self, mut conn: Conn, fault: &StatementError, deadline: Instant) {
        if fault.leaves_the_connection() && matches!(timeout_at(deadline, conn.say("ROLLBACK")).await, Ok(Ok(()))) {
            conn.busy = false;
            self.conn = Some(conn);
        }
    }

    /// The answers by call. The owners of taken ids and keys are read now; a call for which that fails gets an unknown
    /// outcome.
    async fn results(
        &self,
        plan: &WritePlan<'_>,
        calls: usize,
        answers: &[ChangeOutcome],
        conn: &mut Conn,
        deadline: Instant,
    ) -> Vec<Result<ChangeResults, StoreError>> {
        let refused: Vec<(&EncodedChange, InTheWay)> = plan
            .items
            .iter()
            .zip(answers)
            .filter_map(|(item, answer)| match answer {
                ChangeOutcome::Taken(way) => Some((item.sheet, *way)),
                ChangeOutcome::Moved(_) | ChangeOutcome::Refused(_) => None,
            })
            .collect();
        let mut found = Ok(Vec::new().into_iter());
        if !refused.is_empty() {
            let mut asked = Err(StatementError::TimedOut);
            for _ in 0..TRIES_MAX {
                asked = timeout_at(deadline, owners(conn, &refused)).await.unwrap_or(Err(StatementError::TimedOut));
                if !asked.as_ref().is_err_and(StatementError::wants_repeating) {
                    break;
                }
            }
            found = asked.map(Vec::into_iter).map_err(|fault| StoreError::UnknownOutcome(fault.to_string()));
        }
        let mut results: Vec<Result<ChangeResults, StoreError>> = (0..calls).map(|_| Ok(Vec::new())).collect();
        for (item, answer) in plan.items.iter().zip(answers) {
            let result = match answer {
                ChangeOutcome::Moved(seq) => Ok(Ok(*seq)),
                ChangeOutcome::Refused(error) => Ok(Err(error.clone())),
                ChangeOutcome::Taken(_) => match &mut found {
                    Ok(owners) => Ok(Err(owners.next().unwrap_or(ChangeError::Conflict))),
                    Err(error) => Err(error.clone()),
                },
            };
            match (&mut results[item.call], result) {
                (Ok(list), Ok(result)) => list.push(result),
                (slot, Err(error)) => *slot = Err(error),
                (Err(_), Ok(_)) => {}
            }
        }
        results
    }
}

/// The outcomes of steps, grouped by call.
fn by_call(plan: &RunPlan<'_>, stepped: Vec<StepResult>) -> Vec<Vec<StepResult>> {
    let mut calls: Vec<Vec<StepResult>> = Vec::new();
    for (step, stepped) in plan.steps.iter().zip(stepped) {
        if calls.len() <= step.call {
            calls.resize_with(step.call + 1, Vec::new);
        }
        calls[step.call].push(stepped);
    }
    calls
}

fn answer(group: Vec<WaitingCall>, answers: Result<GroupAnswers, TxFailure>) {
    let failed = match answers {
        Ok(GroupAnswers { jobs, runs }) => {
            let (mut jobs, mut runs) = (jobs.into_iter(), runs.into_iter());
            for task in group {
                // The send fails if the caller has gone, which is not an error.
                match task.work {
                    GroupedWork::Jobs(asked) => drop(asked.reply.send(jobs.next().unwrap_or_else(|| Err(unanswered())))),
                    GroupedWork::Runs(asked) => drop(asked.reply.send(runs.next().ok_or_else(unanswered))),
                }
            }
            return;
        }
        Err(TxFailure::Fault(fault)) => {
            match fault.is_refused() {
                // The caller logs this row once, with its name.
                true => tracing::debug!(error = %fault, "a row was refused"),
                false => tracing::warn!(error = %fault, "a write failed and was rolled back"),
            }
            fault.before_commit()
        }
        Err(TxFailure::Known(error)) => error,
    };
    for task in group {
        task.fail(&failed);
    }
}

/// The transaction was committed, and the answer for this call is missing.
fn unanswered() -> StoreError {
    StoreError::UnknownOutcome("a call was not answered".to_owned())
}

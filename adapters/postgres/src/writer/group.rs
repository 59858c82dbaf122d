//! A writing task: takes groups, runs their transactions, and tells every caller what came of it.

use std::sync::Arc;

use lockgate_ports::{ChangeError, StoreError};
use tokio::time::{Instant, timeout_at};

use super::plan::Plan;
use super::run_plan::RunPlan;
use super::steps::Stepped;
use super::taken::{InTheWay, owners};
use super::transaction::{Answer, Outcome, Place, Plans, Stop, Transaction};
use super::{Queue, Results, Task, Work};
use crate::conn::Conn;
use crate::error::Fault;
use crate::pool::Door;
use crate::retry::{TRIES_MAX, repeat_after};
use crate::row::get;
use crate::sheet::Sheet;

/// Rows of `totals`.
pub(crate) const SHARDS: i64 = 64;

pub(super) struct Desk {
    door: Arc<Door>,
    conn: Option<Conn>,
    /// Its row of `totals`, given by the server so that writers seldom share one.
    shard: Option<i64>,
    /// The row's guard; unknown at first, and after somebody raised it.
    guard: Option<i64>,
}

/// Why a transaction did not happen, or is not known to.
enum Failed {
    /// Rolled back before COMMIT.
    Fault(Fault),
    /// The answer is settled.
    Known(StoreError),
}

/// What every caller of a group is told, in their order.
struct Answered {
    jobs: Vec<Result<Results, StoreError>>,
    runs: Vec<Vec<Stepped>>,
}

impl Desk {
    pub(super) fn new(door: Arc<Door>) -> Self {
        Self { door, conn: None, shard: None, guard: None }
    }

    pub(super) async fn serve(mut self, queue: Arc<Queue>) {
        while let Some(group) = queue.next().await {
            self.settle(group).await;
        }
    }

    /// One transaction for all. If one call's own fault rolled it back, each gets a transaction of its own, so that nobody
    /// fails because of a neighbour.
    async fn settle(&mut self, group: Vec<Task>) {
        let group = self.still_wanted(group);
        let Some(oldest) = group.iter().map(|task| task.since).min() else { return };
        let deadline = oldest + self.door.options.deadline;
        match self.commit(&group, deadline).await {
            Err(Failed::Fault(fault)) if group.len() > 1 && fault.is_of_one_call() => {
                for task in group {
                    let alone = [task];
                    let answers = self.commit(&alone, Instant::now() + self.door.options.deadline).await;
                    let [task] = alone;
                    answer(vec![task], answers);
                }
            }
            answers => answer(group, answers),
        }
    }

    /// Calls that have waited too long to be answered in time are refused: nothing of them was written.
    fn still_wanted(&self, group: Vec<Task>) -> Vec<Task> {
        let patience = self.door.options.deadline / 2;
        let (fresh, late): (Vec<Task>, Vec<Task>) = group.into_iter().partition(|task| task.since.elapsed() < patience);
        let error = StoreError::Unavailable("the database did not keep up; try again".to_owned());
        answer(late, Err(Failed::Known(error)));
        fresh
    }

    async fn commit(&mut self, group: &[Task], deadline: Instant) -> Result<Answered, Failed> {
        let plan = Plan::of(group.iter().filter_map(Task::jobs));
        let run_plan = RunPlan::of(group.iter().filter_map(Task::runs));
        let plans = Plans { jobs: &plan, runs: &run_plan };
        let mut tries = 0;
        loop {
            let fault = match self.attempt(plans, group, deadline).await {
                Err(Failed::Fault(fault)) => fault,
                settled => return settled,
            };
            let outdated = fault.is_outdated();
            if outdated {
                self.guard = None;
            }
            if !(outdated || fault.wants_repeating()) || tries == TRIES_MAX || Instant::now() >= deadline {
                return Err(Failed::Fault(fault));
            }
            tokio::time::sleep(repeat_after(tries)).await;
            tries += 1;
        }
    }

    async fn attempt(&mut self, plans: Plans<'_, '_>, group: &[Task], deadline: Instant) -> Result<Answered, Failed> {
        let connected = timeout_at(deadline, self.connected()).await.unwrap_or(Err(Fault::TimedOut));
        let (mut conn, place) = connected.map_err(Failed::Fault)?;
        conn.busy = true;
        let mut commit_sent = false;
        let transaction = Transaction::new(&mut conn, &self.door.options, place, plans, &mut commit_sent).run();
        let stop = match timeout_at(deadline, transaction).await {
            Ok(Ok(Outcome { answers, stepped, rows })) => {
                self.door.tally.committed(rows);
                let calls = group.iter().filter_map(Task::jobs).count();
                let jobs = self.results(plans.jobs, calls, &answers, &mut conn, deadline).await;
                conn.busy = false;
                self.conn = Some(conn);
                return Ok(Answered { jobs, runs: by_call(plans.runs, stepped) });
            }
            Ok(Err(stop)) => stop,
            Err(_) if commit_sent => Stop::Commit(Fault::TimedOut),
            Err(_) => Stop::Before(Fault::TimedOut),
        };
        let (fault, known) = match stop {
            Stop::Before(fault) => (fault, None),
            Stop::Commit(fault) => {
                let error = fault.in_commit();
                let unknown = matches!(error, StoreError::UnknownOutcome(_));
                (fault, unknown.then_some(error))
            }
        };
        self.give_up(conn, &fault, deadline).await;
        let Some(error) = known else { return Err(Failed::Fault(fault)) };
        self.guard = None;
        self.door.lose_track(place.shard);
        if let Err(fault) =
            timeout_at(Instant::now() + self.door.options.deadline, self.door.fence()).await.unwrap_or(Err(Fault::TimedOut))
        {
            tracing::warn!(error = %fault, "a commit of unknown outcome could not be fenced off; it is before anything is read back");
        }
        Err(Failed::Known(error))
    }

    async fn connected(&mut self) -> Result<(Conn, Place), Fault> {
        let kept = self.conn.take().filter(|conn| !conn.is_closed());
        let mut conn = match kept {
            Some(conn) => conn,
            None => self.door.open().await?,
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
        Ok((conn, Place { shard, guard }))
    }

    /// Keeps the connection if it is good for more.
    async fn give_up(&mut self, mut conn: Conn, fault: &Fault, deadline: Instant) {
        if fault.leaves_the_connection() && matches!(timeout_at(deadline, conn.say("ROLLBACK")).await, Ok(Ok(()))) {
            conn.busy = false;
            self.conn = Some(conn);
        }
    }

    /// Answers by call. Who is in the way of a refused birth is read now; a call for which that fails does not learn what
    /// came of it.
    async fn results(
        &self,
        plan: &Plan<'_>,
        calls: usize,
        answers: &[Answer],
        conn: &mut Conn,
        deadline: Instant,
    ) -> Vec<Result<Results, StoreError>> {
        let refused: Vec<(&Sheet, InTheWay)> = plan
            .items
            .iter()
            .zip(answers)
            .filter_map(|(item, answer)| match answer {
                Answer::Taken(way) => Some((item.sheet, *way)),
                Answer::Moved(_) | Answer::Refused(_) => None,
            })
            .collect();
        let mut found = Ok(Vec::new().into_iter());
        if !refused.is_empty() {
            let mut asked = Err(Fault::TimedOut);
            for _ in 0..TRIES_MAX {
                asked = timeout_at(deadline, owners(conn, &refused)).await.unwrap_or(Err(Fault::TimedOut));
                if !asked.as_ref().is_err_and(Fault::wants_repeating) {
                    break;
                }
            }
            found = asked.map(Vec::into_iter).map_err(|fault| StoreError::UnknownOutcome(fault.to_string()));
        }
        let mut results: Vec<Result<Results, StoreError>> = (0..calls).map(|_| Ok(Vec::new())).collect();
        for (item, answer) in plan.items.iter().zip(answers) {
            let result = match answer {
                Answer::Moved(seq) => Ok(Ok(*seq)),
                Answer::Refused(error) => Ok(Err(error.clone())),
                Answer::Taken(_) => match &mut found {
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

/// Steps by call.
fn by_call(plan: &RunPlan<'_>, stepped: Vec<Stepped>) -> Vec<Vec<Stepped>> {
    let mut calls: Vec<Vec<Stepped>> = Vec::new();
    for (step, stepped) in plan.steps.iter().zip(stepped) {
        if calls.len() <= step.call {
            calls.resize_with(step.call + 1, Vec::new);
        }
        calls[step.call].push(stepped);
    }
    calls
}

fn answer(group: Vec<Task>, answers: Result<Answered, Failed>) {
    let failed = match answers {
        Ok(Answered { jobs, runs }) => {
            let (mut jobs, mut runs) = (jobs.into_iter(), runs.into_iter());
            for task in group {
                // A caller that went away does not want its answer.
                match task.work {
                    Work::Jobs(asked) => drop(asked.reply.send(jobs.next().unwrap_or_else(|| Err(unanswered())))),
                    Work::Runs(asked) => drop(asked.reply.send(runs.next().ok_or_else(unanswered))),
                }
            }
            return;
        }
        Err(Failed::Fault(fault)) => {
            match fault.is_refused() {
                // Whoever asked names the row, once.
                true => tracing::debug!(error = %fault, "a row was refused"),
                false => tracing::warn!(error = %fault, "a write failed and was rolled back"),
            }
            fault.before_commit()
        }
        Err(Failed::Known(error)) => error,
    };
    for task in group {
        task.fail(&failed);
    }
}

/// Committed, and nobody knows what was said about it.
fn unanswered() -> StoreError {
    StoreError::UnknownOutcome("a call was not answered".to_owned())
}

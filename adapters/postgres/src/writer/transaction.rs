//! One transaction over a group of calls.
//!
//! Statements are sent together unless one needs the answer of another: a group of plain changes costs one round trip from
//! BEGIN to COMMIT. Each statement checks the evidence of its changes, so a refused change leaves no trace and needs no
//! savepoint.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::ids::JobSeq;
use lockgate_ports::ChangeError;
use lockgate_ports::store::RunRefusal;
use tokio_postgres::Row;

use super::plan::{Item, WritePlan};
use super::run_plan::RunPlan;
use super::sides::Sides;
use super::steps::StepResult;
use super::taken::{InTheWay, owners};
use super::{births, moves, run_calls};
use crate::conn::{Conn, SqlCall, SqlParam};
use crate::encoded_change::{EncodedChange, is_uuid_v7};
use crate::error::StatementError;
use crate::options::ConnectOptions;
use crate::row::get;

/// The outcome of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChangeOutcome {
    Moved(JobSeq),
    Refused(ChangeError),
    /// The id or key is taken; its owner has yet to be read.
    Taken(InTheWay),
}

const CONFLICT: ChangeOutcome = ChangeOutcome::Refused(ChangeError::Conflict);

/// A writer's row of `totals`, as last seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TotalsShard {
    pub(super) shard: i64,
    pub(super) guard: i64,
}

/// Where a transaction failed.
pub(super) enum TxStop {
    /// Before COMMIT was sent: nothing was written.
    Before(StatementError),
    /// After COMMIT was sent: the outcome may be unknown.
    Commit(StatementError),
}

impl From<StatementError> for TxStop {
    fn from(fault: StatementError) -> Self {
        Self::Before(fault)
    }
}

pub(super) struct Transaction<'t, 'a> {
    pub(super) conn: &'t mut Conn,
    pub(super) options: &'t ConnectOptions,
    pub(super) place: TotalsShard,
    pub(super) plan: &'t WritePlan<'a>,
    pub(super) run_plan: &'t RunPlan<'a>,
    /// Set when COMMIT is sent, for a caller whose wait may be cut off by a timeout.
    pub(super) commit_sent: &'t mut bool,
    answers: Vec<Option<ChangeOutcome>>,
    /// Jobs with a refused change, by call: later changes of that call may depend on it.
    refused: BTreeSet<(usize, &'a str)>,
    /// Jobs created by this transaction, by call.
    born: BTreeSet<(usize, &'a str)>,
    /// Keys known to be taken: the call that found out, and the owner. Saves a read for each further caller that wants the
    /// key.
    keys: BTreeMap<(&'a str, &'a str), (usize, Option<ChangeError>)>,
    /// The outcome of each step.
    pub(super) stepped: Vec<Option<StepResult>>,
    /// By how much each tenant's number of unfinished runs changes.
    pub(super) run_counts: BTreeMap<&'a str, i64>,
    /// Statements whose answers are not needed: sent with the next round trip.
    pub(super) waiting: Vec<SqlCall<'a>>,
    begun: bool,
    pub(super) rows: u64,
}

/// The plans of a transaction.
#[derive(Clone, Copy)]
pub(super) struct Plans<'t, 'a> {
    pub(super) jobs: &'t WritePlan<'a>,
    pub(super) runs: &'t RunPlan<'a>,
}

/// The outcome: answers in the order of items and steps, and the number of rows written.
pub(super) struct TxOutcome {
    pub(super) answers: Vec<ChangeOutcome>,
    pub(super) stepped: Vec<StepResult>,
    pub(super) rows: u64,
}

/// Ids and keys taken for births that were then refused.
#[derive(Default)]
struct NamesToFree<'a> {
    ids: Vec<&'a str>,
    keys: Vec<(&'a str, &'a str)>,
}

/// A statement, and how many rows it writes for each row that it returns.
type CountedStatement<'a> = (SqlCall<'a>, u64);

impl<'t, 'a> Transaction<'t, 'a> {
    pub(super) fn new(
        conn: &'t mut Conn,
        options: &'t ConnectOptions,
        place: TotalsShard,
        plans: Plans<'t, 'a>,
        commit_sent: &'t mut bool,
    ) -> Self {
        let Plans { jobs: plan, runs: run_plan } = plans;
        let answers = vec![None; plan.items.len()];
        let (refused, born) = (BTreeSet::new(), BTreeSet::new());
        Self {
            conn,
            options,
            place,
            plan,
            run_plan,
            commit_sent,
            answers,
            refused,
            born,
            keys: BTreeMap::new(),
            stepped: vec![None; run_plan.steps.len()],
            run_counts: BTreeMap::new(),
            waiting: Vec::new(),
            begun: false,
            rows: 0,
        }
    }

    pub(super) async fn run(mut self) -> Result<TxOutcome, TxStop> {
        let run_plan = self.run_plan;
        let plain = run_plan.steps.is_empty() && !self.plan.items.iter().any(|item| item.sheet.has_more());
        let last = self.plan.waves.len().saturating_sub(1);
        for (no, wave) in self.plan.waves.iter().enumerate() {
            self.write(wave, plain && no == last).await?;
        }
        for wave in &run_plan.waves {
            self.take_steps(wave).await?;
        }
        if !*self.commit_sent {
            self.finish().await?;
        }
        let answers = self.answers.iter().map(|answer| answer.clone().unwrap_or(CONFLICT)).collect();
        let stepped = self.stepped.into_iter().map(|stepped| stepped.unwrap_or(Err(RunRefusal::Conflict))).collect();
        Ok(TxOutcome { answers, stepped, rows: self.rows })
    }

    async fn write(&mut self, wave: &[usize], closing: bool) -> Result<(), TxStop> {
        let standing = self.standing(wave);
        let places: BTreeMap<&str, usize> =
            standing.iter().map(|place| (self.plan.items[*place].sheet.id().as_str(), *place)).collect();
        let items: Vec<&Item<'a>> = standing.iter().map(|place| &self.plan.items[*place]).collect();
        let (births, mut moves): (Vec<&Item<'a>>, Vec<&Item<'a>>) = items.into_iter().partition(|i| i.sheet.is_birth());
        // All transactions lock rows in one order, so that they cannot deadlock.
        moves.sort_unstable_by_key(|item| item.sheet.id());
        let mut steps = Vec::new();
        if births.iter().all(|item| item.sheet.is_plain_birth()) {
            if !births.is_empty() {
                steps.push((births::birth(self.params(), &births), 1));
            }
        } else {
            steps.extend(self.admit(&births, &places).await?);
        }
        steps.extend(self.moving(&moves));
        let (calls, weights): (Vec<SqlCall<'a>>, Vec<u64>) = steps.into_iter().unzip();
        let answered = self.send(calls, closing).await?;
        for (rows, weight) in answered.iter().zip(weights) {
            let recorded = self.record(rows, weight, &places);
            // If this answer came together with that of COMMIT, the changes are committed although the answer cannot be
            // decoded.
            recorded.map_err(|fault| if closing { TxStop::Commit(fault) } else { TxStop::Before(fault) })?;
        }
        for place in &standing {
            self.settle(*place);
        }
        if !closing {
            self.find_owners(wave).await?;
        }
        Ok(())
    }

    /// The known outcome of an item whose key is taken. Within one call the owner is read again, because the call may have
    /// changed it.
    fn known_key(&self, item: &Item<'a>) -> Option<ChangeOutcome> {
        let (call, owner) = self.keys.get(&item.sheet.key()?)?;
        let known = owner.clone().filter(|_| *call != item.call).map(ChangeOutcome::Refused);
        Some(known.unwrap_or(ChangeOutcome::Taken(InTheWay::Key)))
    }

    /// Reads the owners of taken names now, before a later wave can change them.
    async fn find_owners(&mut self, wave: &[usize]) -> Result<(), TxStop> {
        let taken = |place: &usize| match self.answers[*place] {
            Some(ChangeOutcome::Taken(way)) => Some((*place, (self.plan.items[*place].sheet, way))),
            _ => None,
        };
        let (places, refused): (Vec<usize>, Vec<_>) = wave.iter().filter_map(taken).unzip();
        if !refused.is_empty() {
            let found = owners(self.conn, &refused).await?;
            for (place, error) in places.into_iter().zip(found) {
                let item = &self.plan.items[place];
                if let (Some(key), Some(ChangeOutcome::Taken(InTheWay::Key))) = (item.sheet.key(), &self.answers[place]) {
                    self.keys.insert(key, (item.call, Some(error.clone())));
                }
                self.answers[place] = Some(ChangeOutcome::Refused(error));
            }
        }
        Ok(())
    }

    /// Items that may still be accepted.
    fn standing(&mut self, wave: &[usize]) -> Vec<usize> {
        let mut standing = Vec::with_capacity(wave.len());
        for place in wave {
            let item = &self.plan.items[*place];
            let name = (item.call, item.sheet.id().as_str());
            let unnumbered = !item.sheet.is_birth() && item.sheet.job().seq == JobSeq::default();
            let builds_on_refused = !item.sheet.is_birth() && self.refused.contains(&name);
            if let Some(answer) = self.known_key(item) {
                self.answers[*place] = Some(answer);
                self.refused.insert(name);
            } else if builds_on_refused || (unnumbered && !self.born.contains(&name)) {
                self.answers[*place] = Some(CONFLICT);
                self.refused.insert(name);
            } else {
                standing.push(*place);
            }
        }
        standing
    }

    /// Births whose id or key may be taken. Both are inserted first; if one is taken, the other is removed again.
    async fn admit(
        &mut self,
        births: &[&Item<'a>],
        places: &BTreeMap<&str, usize>,
    ) -> Result<Vec<CountedStatement<'a>>, TxStop> {
        let keyed: Vec<(&Item<'a>, &'a str)> =
            births.iter().filter_map(|item| item.sheet.key().map(|(_, key)| (*item, key))).collect();
        let twins: Vec<&str> = births.iter().map(|item| item.sheet.id().as_str()).filter(|id| is_uuid_v7(id)).collect();
        let mut calls = Vec::new();
        if !twins.is_empty() {
            calls.push(births::lock_twins(twins));
        }
        calls.push(births::take_keys(self.params(), &keyed));
        calls.push(births::register(self.params(), births));
        let mut answered = self.send(calls, false).await?;
        let seqs: BTreeMap<String, i64> = named_rows(&answered.pop().unwrap_or_default())?;
        let keys = answered.pop().unwrap_or_default();
        let keys: BTreeSet<&str> = keys.iter().map(|row| get(row, 0)).collect::<Result<_, StatementError>>()?;
        let (mut live, mut ended, mut undo) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()), NamesToFree::default());
        for item in births {
            let id = item.sheet.id().as_str();
            let has_key = item.sheet.key().is_none() || keys.contains(id);
            match (has_key, seqs.get(id)) {
                (true, Some(seq)) => {
                    let side = if item.sheet.job().state().is_terminal() { &mut ended } else { &mut live };
                    side.0.push(*item);
                    side.1.push(*seq);
                }
                (has_key, seq) => {
                    undo.ids.extend(seq.map(|_| id));
                    undo.keys.extend(item.sheet.key().filter(|_| has_key));
                    if let Some(place) = places.get(id) {
                        self.answers[*place] =
                            Some(ChangeOutcome::Taken(if has_key { InTheWay::Id } else { InTheWay::Key }));
                    }
                }
            }
        }
        self.rows += (live.0.len() + ended.0.len() + keys.len()) as u64;
        let forgotten = births::forget(&undo.ids, &undo.keys).into_iter();
        let mut steps: Vec<CountedStatement<'a>> = forgotten.map(|call| (call, 0)).collect();
        if !live.0.is_empty() {
            steps.push((births::enter_hot(self.params(), &live.0, live.1), 1));
        }
        if !ended.0.is_empty() {
            steps.push((births::enter_done(self.params(), &ended.0, ended.1), 1));
        }
        Ok(steps)
    }

    fn moving(&self, moves: &[&Item<'a>]) -> Vec<CountedStatement<'a>> {
        let pick =
            |wanted: &dyn Fn(&Item<'a>) -> bool| moves.iter().copied().filter(|item| wanted(item)).collect::<Vec<_>>();
        let ends = |item: &Item<'a>| item.sheet.job().state().is_terminal();
        let old = |item: &Item<'a>| item.sheet.may_have_ended();
        let mut steps: Vec<CountedStatement<'a>> = Vec::new();
        let on = pick(&|item| !ends(item));
        if !on.is_empty() {
            steps.push((moves::move_on(self.params(), &on), 1));
        }
        let ending = pick(&ends);
        if !ending.is_empty() {
            steps.push((moves::end(self.params(), &ending), 2));
        }
        let again = pick(&|item| ends(item) && old(item));
        if !again.is_empty() {
            steps.push((moves::end_again(self.params(), &again), 1));
        }
        let back = pick(&|item| !ends(item) && old(item));
        if !back.is_empty() {
            steps.push((moves::revive(self.params(), &back), 2));
        }
        steps
    }

    fn record(&mut self, rows: &[Row], weight: u64, places: &BTreeMap<&str, usize>) -> Result<(), StatementError> {
        let mut tallied = BTreeSet::new();
        for row in rows {
            if let Some(place) = places.get(get::<&str>(row, 0)?) {
                self.answers[*place] = Some(ChangeOutcome::Moved(JobSeq(get(row, 1)?)));
                tallied.extend(tallied_tenant(self.plan.items[*place].sheet, weight));
            }
        }
        self.rows += weight * rows.len() as u64 + tallied.len() as u64;
        Ok(())
    }

    /// An item that no statement returned was refused.
    fn settle(&mut self, place: usize) {
        let item = &self.plan.items[place];
        let name = (item.call, item.sheet.id().as_str());
        let usual = if item.sheet.is_birth() { ChangeOutcome::Taken(InTheWay::Id) } else { CONFLICT };
        match self.answers[place].get_or_insert(usual) {
            ChangeOutcome::Moved(_) if item.sheet.is_birth() => {
                self.born.insert(name);
                self.keys.extend(item.sheet.key().map(|key| (key, (item.call, None))));
            }
            ChangeOutcome::Moved(_) => {}
            ChangeOutcome::Refused(_) | ChangeOutcome::Taken(_) => drop(self.refused.insert(name)),
        }
    }

    /// Writes the other rows of accepted changes, and sends COMMIT.
    async fn finish(&mut self) -> Result<(), TxStop> {
        let mut sides = Sides::default();
        for (item, answer) in self.plan.items.iter().zip(&self.answers) {
            if let Some(ChangeOutcome::Moved(seq)) = answer {
                sides.add(item.sheet, *seq);
            }
        }
        for (step, stepped) in self.run_plan.steps.iter().zip(&self.stepped) {
            if let Some(Ok(seqs)) = stepped {
                sides.add_step(step.sheet, seqs);
            }
        }
        let mut calls = sides.calls(self.options.now(), self.place.shard)?;
        self.rows += sides.rows() + self.run_counts.len() as u64;
        calls.extend(run_calls::tally(self.place.shard, &self.run_counts));
        self.send(calls, true).await?;
        Ok(())
    }

    pub(super) fn params(&self) -> Vec<SqlParam<'a>> {
        self.plan.proofs.params(self.options.now(), self.place.shard)
    }

    /// Locks for rows that evidence names: no other transaction may change them until this one is over.
    fn locks(&self) -> Vec<SqlCall<'a>> {
        let proofs = &self.plan.proofs;
        let locks = [
            (include_str!("../../queries/lock_sessions.sql"), proofs.sessions()),
            (include_str!("../../queries/lock_parents.sql"), proofs.parents()),
        ];
        let named = locks.into_iter().filter(|(_, names)| !names.is_empty());
        named.map(|(sql, names)| SqlCall { sql, params: vec![Box::new(names)] }).collect()
    }

    /// The first round trip opens the transaction and takes its locks in this order: the writer's own `totals` row, which
    /// every activation waits for; then the sessions that evidence names, which cannot be closed or attached again
    /// meanwhile; and the jobs whose attempts submit children.
    pub(super) async fn send(&mut self, asked: Vec<SqlCall<'a>>, closing: bool) -> Result<Vec<Vec<Row>>, TxStop> {
        let mut calls = std::mem::take(&mut self.waiting);
        let mut unasked = calls.len();
        calls.extend(asked);
        if calls.is_empty() && self.begun && !closing {
            return Ok(Vec::new());
        }
        let opening = !self.begun;
        let locks = if opening { self.locks() } else { Vec::new() };
        unasked += locks.len();
        calls.splice(0..0, locks);
        let TotalsShard { shard, guard } = self.place;
        // If the guard was raised, the division by zero ends the transaction. It is the only portable way that needs no
        // answer before the next statement.
        let begin = format!(
            "{}; SELECT 1 / (guard = {guard})::int FROM totals WHERE shard = {shard} FOR UPDATE",
            self.options.begin()
        );
        self.begun = true;
        self.conn.prepare_all(&calls).await?;
        *self.commit_sent = closing;
        let answers = self.conn.together(opening.then_some(begin.as_str()), &calls, closing.then_some("COMMIT")).await?;
        match answers.split() {
            Ok((rows, Ok(()))) => Ok(rows.into_iter().skip(unasked).collect()),
            Ok((_, Err(fault))) => Err(TxStop::Commit(fault)),
            Err(fault) if closing && !fault.was_refused() => Err(TxStop::Commit(fault)),
            Err(fault) => Err(TxStop::Before(fault)),
        }
    }
}

/// The tenant whose tally the change affects. An end and a new life write two rows of the job itself.
fn tallied_tenant(sheet: &EncodedChange, weight: u64) -> Option<&str> {
    let counts = weight == 2 || sheet.is_birth() || sheet.result().is_some();
    counts.then(|| sheet.job().request.tenant.as_str())
}

fn named_rows(rows: &[Row]) -> Result<BTreeMap<String, i64>, StatementError> {
    rows.iter().map(|row| Ok((get::<String>(row, 0)?, get(row, 1)?))).collect()
}

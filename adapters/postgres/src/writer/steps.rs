//! steps of runs within a transaction.
//!
//! A first round trip locks the heads and takes what each step needs: its key, its head if the run is new, and numbers for
//! its jobs. Its answers decide each step as a whole. A second round trip writes the accepted steps and removes what refused
//! ones had taken; it is sent together with COMMIT.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::ids::JobSeq;
use lockgate_core::job::Evidence;
use lockgate_core::request::RequestHash;
use lockgate_ports::store::RunRefusal;
use tokio_postgres::Row;

use super::plan::Item;
use super::run_plan::PlannedStep;
use super::transaction::{Transaction, TxStop};
use super::{births, run_calls};
use crate::conn::SqlCall;
use crate::error::StatementError;
use crate::row::{bytes, get};

/// The outcome of a step: the sequence numbers of its jobs, or why it was refused.
pub(super) type StepResult = Result<Vec<JobSeq>, RunRefusal>;

/// The answers of a wave's first round trip.
struct RunHeads {
    /// The versions of existing heads, and whether those runs are over.
    heads: BTreeMap<String, (i64, bool)>,
    /// Runs that got their key.
    keyed: BTreeSet<String>,
    /// Runs whose head was inserted.
    begun: BTreeSet<String>,
    taken: BTreeSet<String>,
    /// The policy in force, if some step needs it.
    policy: Option<String>,
    numbers: std::vec::IntoIter<i64>,
}

impl<'a> Transaction<'_, 'a> {
    pub(super) async fn take_steps(&mut self, wave: &[usize]) -> Result<(), TxStop> {
        let run_plan = self.run_plan;
        let steps: Vec<&PlannedStep<'a>> = wave.iter().map(|place| &run_plan.steps[*place]).collect();
        let mut found = self.ask_for(&steps).await?;
        let missing: Vec<(&str, &str)> = steps.iter().filter_map(|step| unkeyed(step, &found)).collect();
        let owners = self.key_owners(&missing).await?;
        let mut accepted = Vec::new();
        for (place, step) in wave.iter().zip(&steps) {
            let stepped = match refusal(step, &found, &owners) {
                None => Ok(step.births.iter().filter_map(|_| found.numbers.next()).map(JobSeq).collect()),
                Some(refusal) => Err(refusal),
            };
            accepted.extend(stepped.is_ok().then_some(*step));
            self.stepped[*place] = Some(stepped);
        }
        self.count_runs(&found, &accepted);
        self.give_back(&steps, &found, &accepted);
        self.write_steps(wave, &accepted);
        Ok(())
    }

    /// Counts a run that begins, ends or reopens for its tenant.
    fn count_runs(&mut self, found: &RunHeads, accepted: &[&PlannedStep<'a>]) {
        for sheet in accepted.iter().map(|step| step.sheet) {
            let was_live = found.heads.get(sheet.id()).is_some_and(|(_, over)| !over);
            let change = i64::from(!sheet.head.state.is_over()) - i64::from(was_live);
            if change != 0 || sheet.is_start() {
                *self.run_counts.entry(sheet.head.tenant.as_str()).or_default() += change;
            }
        }
    }

    async fn ask_for(&mut self, steps: &[&PlannedStep<'a>]) -> Result<RunHeads, TxStop> {
        let now = self.options.now();
        let starts: Vec<&PlannedStep<'a>> = steps.iter().copied().filter(|step| step.sheet.is_start()).collect();
        let keyed: Vec<&PlannedStep<'a>> = starts.iter().copied().filter(|step| step.sheet.key.is_some()).collect();
        let ids: Vec<&str> = steps.iter().flat_map(|step| &step.births).map(|birth| birth.sheet.id().as_str()).collect();
        let mut calls = vec![
            run_calls::lock(steps),
            run_calls::take_keys(now, &keyed),
            run_calls::begin(now, &starts),
            run_calls::taken(ids.clone()),
            run_calls::numbers(ids.len()),
        ];
        let asks = steps.iter().flat_map(|step| &step.births).any(|birth| allowing(birth).is_some());
        calls.extend(asks.then(run_calls::policy));
        let mut answered = self.send(calls, false).await?.into_iter();
        let mut next = || answered.next().unwrap_or_default();
        let head = |row: &Row| Ok((get(row, 0)?, (get(row, 1)?, get(row, 2)?)));
        let heads = next().iter().map(head).collect::<Result<_, StatementError>>()?;
        let (keyed, begun, taken) = (names(&next())?, names(&next())?, names(&next())?);
        let numbers = next().iter().map(|row| get(row, 0)).collect::<Result<Vec<i64>, StatementError>>()?;
        let policy = next().first().map(|row| get::<String>(row, 0)).transpose()?;
        Ok(RunHeads { heads, keyed, begun, taken, policy, numbers: numbers.into_iter() })
    }

    async fn key_owners(&mut self, keys: &[(&str, &str)]) -> Result<BTreeMap<(String, String), RunRefusal>, TxStop> {
        if keys.is_empty() {
            return Ok(BTreeMap::new());
        }
        let (tenants, keys): (Vec<&str>, Vec<&str>) = keys.iter().copied().unzip();
        let rows = self.conn.rows(include_str!("../../queries/run_key_owners.sql"), &[&tenants, &keys]).await?;
        let owner = |row: &Row| {
            let taken = RunRefusal::Taken { run: get::<&str>(row, 2)?.into(), hash: RequestHash(bytes(row, 3)?) };
            Ok(((get(row, 0)?, get(row, 1)?), taken))
        };
        Ok(rows.iter().map(owner).collect::<Result<_, StatementError>>()?)
    }

    /// Removes what refused starts had taken; no other transaction ever saw it.
    fn give_back(&mut self, steps: &[&PlannedStep<'a>], found: &RunHeads, accepted: &[&PlannedStep<'a>]) {
        let kept: BTreeSet<&str> = accepted.iter().map(|step| step.sheet.id()).collect();
        let starts = steps.iter().map(|step| step.sheet).filter(|sheet| sheet.is_start() && !kept.contains(sheet.id()));
        let (mut begun, mut keys) = (Vec::new(), Vec::new());
        for sheet in starts {
            begun.extend(found.begun.contains(sheet.id()).then(|| sheet.id()));
            keys.extend(sheet.key().filter(|_| found.keyed.contains(sheet.id())));
        }
        self.waiting.extend(run_calls::forget(begun, &keys));
    }

    fn write_steps(&mut self, wave: &[usize], accepted: &[&PlannedStep<'a>]) {
        let run_plan = self.run_plan;
        let now = self.options.now();
        let moved: Vec<&PlannedStep<'a>> = accepted.iter().copied().filter(|step| !step.sheet.is_start()).collect();
        let mut calls: Vec<SqlCall<'a>> = Vec::new();
        calls.extend((!moved.is_empty()).then(|| run_calls::move_on(now, &moved)));
        calls.extend(run_calls::write_nodes(accepted));
        calls.extend(run_calls::forget_heard(accepted));
        let (mut live, mut ended) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
        for place in wave {
            let Some(Ok(seqs)) = &self.stepped[*place] else { continue };
            for (birth, seq) in run_plan.steps[*place].births.iter().zip(seqs) {
                let side = if birth.sheet.job().state().is_terminal() { &mut ended } else { &mut live };
                side.0.push(birth);
                side.1.push(seq.0);
            }
        }
        let rows = accepted.iter().map(|step| 1 + step.sheet.nodes.len() + step.sheet.heard.len() + step.births.len());
        let tenants = |births: &[&Item<'a>]| {
            births.iter().map(|birth| birth.sheet.job().request.tenant.as_str()).collect::<BTreeSet<_>>().len()
        };
        self.rows += (rows.sum::<usize>() + tenants(&live.0) + tenants(&ended.0)) as u64;
        if !live.0.is_empty() {
            calls.push(births::enter_hot(self.params(), &live.0, live.1));
        }
        if !ended.0.is_empty() {
            calls.push(births::enter_done(self.params(), &ended.0, ended.1));
        }
        self.waiting.extend(calls);
    }
}

fn unkeyed<'a>(step: &PlannedStep<'a>, found: &RunHeads) -> Option<(&'a str, &'a str)> {
    step.sheet.key().filter(|_| !found.keyed.contains(step.sheet.id()))
}

fn refusal(step: &PlannedStep<'_>, found: &RunHeads, owners: &BTreeMap<(String, String), RunRefusal>) -> Option<RunRefusal> {
    let sheet = step.sheet;
    if let Some((tenant, key)) = unkeyed(step, found) {
        // The owner of the key was deleted meanwhile: answered as a conflict, so that the caller tries again.
        let owner = owners.get(&(tenant.to_owned(), key.to_owned()));
        return Some(owner.cloned().unwrap_or(RunRefusal::Conflict));
    }
    let fits = if sheet.is_start() {
        found.begun.contains(sheet.id())
    } else {
        found.heads.get(sheet.id()).is_some_and(|(version, _)| version + 1 == sheet.head.version)
    };
    let free = !sheet.has_twins && step.births.iter().all(|birth| !found.taken.contains(birth.sheet.id().as_str()));
    let allowed = step.births.iter().filter_map(allowing).all(|policy| found.policy.as_deref() == Some(policy));
    (!fits || !free || !allowed).then_some(RunRefusal::Conflict)
}

/// The policy that must be in force for this birth.
fn allowing<'b>(birth: &'b Item<'_>) -> Option<&'b str> {
    match &birth.sheet.transition().evidence {
        Evidence::InForce(policy) => Some(policy),
        _ => None,
    }
}

fn names(rows: &[Row]) -> Result<BTreeSet<String>, StatementError> {
    rows.iter().map(|row| get(row, 0)).collect()
}

//! What is wrong, and what to do about it.

use std::time::Duration;

use lockgate_ports::{Condition, Pinned, StoreError};

use super::{Failing, HealthView, ProcessStage, StoreState};

/// What is read and reported on takes less; dead rows of a busy queue slow every claim after a few minutes.
const PINNED_LONG: Duration = Duration::from_mins(5);
/// Of what the Store does not know for how long it has been there.
const PINNED_LONG_TRANSACTIONS: u64 = 1_000_000;

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthProblem {
    pub trouble: ProblemKind,
    pub detail: String,
}

/// Kinds of trouble, the most serious first. What each is called is part of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    Leaving,
    Starting,
    StoreHanging,
    StoreRefusing,
    StoreFull,
    StoreDamaged,
    LoopStuck,
    RowsUnreadable,
    RowsRefused,
    NoLeader,
    LanesAway,
    LanesAhead,
    KernelAway,
    BusAway,
    OutboxLate,
    HorizonPinned,
    ClockJumped,
}

impl ProblemKind {
    pub const ALL: [Self; 17] = [
        Self::Leaving,
        Self::Starting,
        Self::StoreHanging,
        Self::StoreRefusing,
        Self::StoreFull,
        Self::StoreDamaged,
        Self::LoopStuck,
        Self::RowsUnreadable,
        Self::RowsRefused,
        Self::NoLeader,
        Self::LanesAway,
        Self::LanesAhead,
        Self::KernelAway,
        Self::BusAway,
        Self::OutboxLate,
        Self::HorizonPinned,
        Self::ClockJumped,
    ];

    pub const fn code(self) -> &'static str {
        match self {
            Self::Leaving => "leaving",
            Self::Starting => "starting",
            Self::StoreHanging => "store_hanging",
            Self::StoreRefusing => "store_refusing",
            Self::StoreFull => "store_full",
            Self::StoreDamaged => "store_damaged",
            Self::LoopStuck => "loop_stuck",
            Self::RowsUnreadable => "rows_unreadable",
            Self::RowsRefused => "rows_refused",
            Self::NoLeader => "no_leader",
            Self::LanesAway => "lanes_away",
            Self::LanesAhead => "lanes_ahead",
            Self::KernelAway => "kernel_away",
            Self::BusAway => "bus_away",
            Self::OutboxLate => "outbox_late",
            Self::HorizonPinned => "horizon_pinned",
            Self::ClockJumped => "clock_jumped",
        }
    }

    /// Calls are better sent elsewhere. The rest concerns every process alike, or only what is done in the background: to
    /// send calls away would turn a delay into an outage.
    pub const fn is_serious(self) -> bool {
        match self {
            Self::Leaving
            | Self::Starting
            | Self::StoreHanging
            | Self::StoreRefusing
            | Self::StoreFull
            | Self::StoreDamaged
            | Self::LoopStuck => true,
            Self::RowsUnreadable
            | Self::RowsRefused
            | Self::NoLeader
            | Self::LanesAway
            | Self::LanesAhead
            | Self::KernelAway
            | Self::BusAway
            | Self::OutboxLate
            | Self::HorizonPinned
            | Self::ClockJumped => false,
        }
    }

    /// What to do next.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Leaving => "send calls to another process: this one was told to end, and still answers those that come",
            Self::Starting => "wait a moment; if it lasts, the log says what it waits for",
            Self::StoreHanging => {
                "the Store takes calls and does not answer: look for a stopped process, a long lock, or a disk or network \
                 that is stuck; nothing is acknowledged until it answers, and nothing acknowledged is lost"
            }
            Self::StoreRefusing => {
                "is the database running, reachable from here, and are its address and credentials right? End the transaction \
                 that is named if a lock is in the way. Nothing is acknowledged until it answers, and workers keep their results"
            }
            Self::StoreFull => {
                "make room on the Store's disk, raise --disk-limit if there is one, or keep ended jobs for a shorter time \
                 (--retention)"
            }
            Self::StoreDamaged => {
                "new jobs are refused, for their results might not be stored: stop this process, keep the data folder or the \
                 database as it is, and restore the Store from a backup as docs/backup.md says"
            }
            Self::LoopStuck => {
                "restart this process: nothing acknowledged is lost by that; keep its log, this is a defect worth reporting"
            }
            Self::RowsUnreadable => {
                "the row that is named is passed by, and its neighbours go on: upgrade this process if a newer version wrote it; \
                 else mend the row, or restore it from a backup. The log names each of them once"
            }
            Self::RowsRefused => {
                "the row that is named stays as it is, and its neighbours go on: is there a trigger or a constraint on its table \
                 that is not Lockgate's, or a value that the database cannot hold? Once that is gone, the row goes on by itself. \
                 The log names each of them once"
            }
            Self::NoLeader => "start a process with the role that is named, or find out why the running ones do not lead",
            Self::LanesAway => "bring Redis back: until then nothing new is claimed, and submits and results go on",
            Self::LanesAhead => {
                "if the Store was restored, delete the keys of the ready queues in Redis as docs/backup.md says: they are of the \
                 other timeline, and are filled from the Store again; else look for processes that use them with another \
                 database, and give one of the two another name (--installation)"
            }
            Self::KernelAway => "bring the safety kernel back: until then its circuit breaker and the fail mode decide",
            Self::BusAway => "bring NATS back: until then other processes notice news by looking, seconds later",
            Self::OutboxLate => {
                "look at the sink that is named: is it up, has it room, may we write to it? Messages wait in the Store until it \
                 takes them, and nothing of them is lost"
            }
            Self::HorizonPinned => {
                "end what is named (pg_terminate_backend, ROLLBACK PREPARED, pg_drop_replication_slot): until then PostgreSQL removes \
                 none of the rows that ended since, and claims get slower with each of them"
            }
            Self::ClockJumped => {
                "set the clock of the machine that is named right, and look at its time service; work goes on by the time before the \
                 jump meanwhile. A clock that was wrong before and is right now is followed by itself after --clock-settle"
            }
        }
    }
}

pub(super) fn all(view: &HealthView, stage: ProcessStage) -> Vec<HealthProblem> {
    let stuck = view.loops.iter().filter(|view| view.stuck);
    let stuck = list(stuck.map(|view| format!("{} for {} s", view.name, view.moved_ago.as_secs())));
    let vacant = view.leaders.iter().filter(|leader| leader.nobody);
    let vacant = list(vacant.map(|leader| format!("{} (role {})", leader.lease, leader.role)));
    let found = [
        (stage == ProcessStage::Leaving).then(|| (ProblemKind::Leaving, "this process was told to end".to_owned())),
        store(view),
        (stage == ProcessStage::Starting).then(|| (ProblemKind::Starting, "this process has not come up yet".to_owned())),
        stuck.map(|loops| (ProblemKind::LoopStuck, format!("these loops have not moved: {loops}"))),
        view.unreadable
            .as_ref()
            .map(|row| (ProblemKind::RowsUnreadable, format!("a row of the Store cannot be read: {row}"))),
        view.refused.as_ref().map(|row| (ProblemKind::RowsRefused, format!("the Store does not take a row: {row}"))),
        vacant.map(|leases| (ProblemKind::NoLeader, format!("nobody leads {leases}"))),
        lanes(view),
        (!view.kernel.ready).then(|| (ProblemKind::KernelAway, "the safety kernel gives no verdicts".to_owned())),
        view.bus_away.clone().map(|why| (ProblemKind::BusAway, format!("the bus does not reach other processes: {why}"))),
        view.outbox_late.clone().map(|why| (ProblemKind::OutboxLate, why)),
        view.pinned.as_ref().and_then(pinned),
        list(view.clocks.iter().cloned()).map(|why| (ProblemKind::ClockJumped, why)),
    ];
    found.into_iter().flatten().map(|(trouble, detail)| HealthProblem { trouble, detail }).collect()
}

fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let text = items.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then_some(text)
}

fn store(view: &HealthView) -> Option<(ProblemKind, String)> {
    match &view.store.state {
        StoreState::Answers => view.store.failing.as_ref().map(|Failing { calls, failed, of, error }| {
            (trouble_of(error), format!("{failed} of {of} {calls} failed in the last 10 s: {error}"))
        }),
        StoreState::Unknown => Some((ProblemKind::Starting, "the Store was not asked yet".to_owned())),
        StoreState::Hangs => {
            let seconds = view.store.took.as_secs_f64();
            Some((ProblemKind::StoreHanging, format!("the Store did not answer within {seconds:.1} s")))
        }
        StoreState::Refuses(error) => Some((trouble_of(error), error.to_string())),
    }
}

const fn trouble_of(error: &StoreError) -> ProblemKind {
    match error {
        StoreError::Unavailable(_) | StoreError::UnknownOutcome(_) | StoreError::Refused(_) => ProblemKind::StoreRefusing,
        StoreError::Full(_) => ProblemKind::StoreFull,
        StoreError::Corrupt(_) => ProblemKind::StoreDamaged,
    }
}

fn pinned(pinned: &Pinned) -> Option<(ProblemKind, String)> {
    let Pinned { holder, held_for, transactions, dead_rows } = pinned;
    let since = match held_for {
        Some(held_for) if *held_for >= PINNED_LONG => format!("{} s", held_for.as_secs()),
        None if *transactions >= PINNED_LONG_TRANSACTIONS => format!("{transactions} transactions"),
        Some(_) | None => return None,
    };
    let detail = format!("the xmin horizon has been held for {since} by {holder}: {dead_rows} dead rows of jobs are kept");
    Some((ProblemKind::HorizonPinned, detail))
}

fn lanes(view: &HealthView) -> Option<(ProblemKind, String)> {
    match (&view.lanes, view.lanes_ahead_of) {
        (Condition::Away(why), _) => Some((ProblemKind::LanesAway, format!("the ready queues cannot be asked: {why}"))),
        (_, Some(version)) => {
            let why = format!("the ready queues follow later pools than version {version} of the Store: nothing is claimed");
            Some((ProblemKind::LanesAhead, why))
        }
        // Somebody rebuilds them within moments, and claims go on meanwhile.
        (Condition::Sound | Condition::Behind | Condition::Blank, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_trouble_has_a_code_of_its_own_that_the_docs_explain() {
        let page = include_str!("../../../../docs/resilience.md");
        let codes: BTreeSet<&str> = ProblemKind::ALL.iter().map(|trouble| trouble.code()).collect();
        assert_eq!(codes.len(), ProblemKind::ALL.len());
        for trouble in ProblemKind::ALL {
            let ready = if trouble.is_serious() { "no" } else { "yes" };
            let row = format!("| `{}` | {ready} |", trouble.code());
            assert!(page.contains(&row), "docs/resilience.md has no row {row}");
        }
    }
}

//! The breaker of this process, and the one that all replicas share.
//!
//! The shared one decides while it answers. The own one hears of every call made here all the same, so that it knows what
//! this process saw when it has to decide alone.

use std::collections::VecDeque;
use std::sync::Arc;

use lockgate_core::breaker::{Breaker, BreakerSettings, BreakerState, Ticket};
use lockgate_core::time::Timestamp;
use lockgate_ports::{
    BreakerAnswer, BreakerMove, BreakerStanding, BreakerView, CallOutcome, Clock, Counters, CountersAway, Sharing,
};
use parking_lot::Mutex;

/// Moves kept until they are read; older ones are forgotten.
const MOVES_MAX: usize = 64;

/// What a breaker is called here, and among the replicas.
#[derive(Clone, Copy)]
pub(crate) struct BreakerName {
    pub(crate) here: &'static str,
    pub(crate) shared: &'static str,
}

pub(crate) struct KernelBreakers {
    name: BreakerName,
    settings: BreakerSettings,
    clock: Arc<dyn Clock>,
    counters: Option<Arc<dyn Counters>>,
    known: Mutex<BreakerPair>,
}

struct BreakerPair {
    own: Breaker,
    shared: SharedBreakerView,
    last_error: Option<Arc<str>>,
    /// The state that was last told of.
    told: BreakerState,
    moves: VecDeque<BreakerMove>,
}

/// The shared breaker when it was last heard of.
struct SharedBreakerView {
    away: bool,
    state: BreakerState,
    failures: u32,
    open_until: Option<Timestamp>,
}

/// A call that may be made.
pub(crate) struct CallPermit {
    own: Option<Ticket>,
    shared: Option<Ticket>,
}

impl KernelBreakers {
    pub(crate) fn new(
        name: BreakerName,
        clock: Arc<dyn Clock>,
        settings: BreakerSettings,
        counters: Option<Arc<dyn Counters>>,
    ) -> Self {
        let shared = SharedBreakerView { away: false, state: BreakerState::Closed, failures: 0, open_until: None };
        let known = BreakerPair {
            own: Breaker::new(settings),
            shared,
            last_error: None,
            told: BreakerState::Closed,
            moves: VecDeque::new(),
        };
        Self { name, settings, clock, counters, known: Mutex::new(known) }
    }

    /// Whether a call would be let through now, as far as is known here.
    pub(crate) fn lets_through(&self) -> bool {
        let (now, known) = (self.clock.now(), self.known.lock());
        let open_until = match self.sharing(&known) {
            Sharing::Shared => known.shared.open_until,
            Sharing::Alone | Sharing::LocalFallback => known.own.opens_until(),
        };
        open_until.is_none_or(|until| until <= now)
    }

    /// Asks to make a call. None: it must not be made.
    pub(crate) async fn ask(&self) -> Option<CallPermit> {
        if let Some(counters) = &self.counters {
            let answer = counters.ask(self.name.shared, &self.settings).await;
            let asked = answer.as_ref().ok().map(|(asked, _)| *asked);
            self.heard(answer.map(|(_, standing)| standing));
            match asked {
                Some(BreakerAnswer::Go(ticket)) => return Some(CallPermit { own: self.ask_own(), shared: Some(ticket) }),
                Some(BreakerAnswer::Refused { .. }) => return None,
                None => {}
            }
        }
        self.ask_own().map(|own| CallPermit { own: Some(own), shared: None })
    }

    /// What became of a call.
    pub(crate) async fn tell(&self, admitted: CallPermit, result: Result<(), Arc<str>>) {
        let outcome = if result.is_ok() { CallOutcome::Succeeded } else { CallOutcome::Failed };
        self.tell_own(admitted.own, result);
        if let (Some(counters), Some(ticket)) = (&self.counters, admitted.shared) {
            self.heard(counters.tell(self.name.shared, &self.settings, ticket, outcome).await);
        }
    }

    /// Looks at the shared breaker, for views that would otherwise be as old as the latest call.
    pub(crate) async fn refresh(&self) {
        if let Some(counters) = &self.counters {
            self.heard(counters.look(self.name.shared, &self.settings).await);
        }
    }

    pub(crate) fn view(&self) -> BreakerView {
        let (now, known) = (self.clock.now(), self.known.lock());
        let (sharing, state) = (self.sharing(&known), self.state(&known, now));
        let (failures, open_until) = match sharing {
            Sharing::Shared => (known.shared.failures, known.shared.open_until),
            Sharing::Alone | Sharing::LocalFallback => (known.own.failures(now), known.own.opens_until()),
        };
        BreakerView { name: self.name.here, state, failures, open_until, last_error: known.last_error.clone(), sharing }
    }

    /// What it did since this was last asked.
    pub(crate) fn moves(&self) -> Vec<BreakerMove> {
        let (now, mut known) = (self.clock.now(), self.known.lock());
        self.note(&mut known, now);
        known.moves.drain(..).collect()
    }

    fn state(&self, known: &BreakerPair, now: Timestamp) -> BreakerState {
        match self.sharing(known) {
            Sharing::Shared => known.shared.state_at(now),
            Sharing::Alone | Sharing::LocalFallback => known.own.state(now),
        }
    }

    fn sharing(&self, known: &BreakerPair) -> Sharing {
        match &self.counters {
            None => Sharing::Alone,
            Some(_) if known.shared.away => Sharing::LocalFallback,
            Some(_) => Sharing::Shared,
        }
    }

    fn ask_own(&self) -> Option<Ticket> {
        let (now, mut known) = (self.clock.now(), self.known.lock());
        // An open breaker whose time is over is half-open before it lets a call through.
        self.note(&mut known, now);
        known.own.ask(now).ok()
    }

    fn tell_own(&self, ticket: Option<Ticket>, result: Result<(), Arc<str>>) {
        let now = self.clock.now();
        let mut known = self.known.lock();
        match (ticket, &result) {
            (Some(ticket), Ok(())) => known.own.succeeded(ticket),
            (Some(ticket), Err(_)) => known.own.failed(ticket, now),
            (None, _) => {}
        }
        known.last_error = result.err().or_else(|| known.last_error.take());
        self.note(&mut known, now);
    }

    fn heard(&self, answer: Result<BreakerStanding, CountersAway>) {
        let now = self.clock.now();
        let mut known = self.known.lock();
        match answer {
            Ok(standing) => {
                if known.shared.away {
                    tracing::info!(breaker = self.name.here, "circuit breaker is shared again");
                }
                self.note(&mut known, now);
                known.shared = SharedBreakerView::at(now, &standing);
            }
            Err(away) if !known.shared.away => {
                tracing::warn!(breaker = self.name.here, %away, "circuit breaker falls back to this process");
                known.shared.away = true;
            }
            Err(_) => {}
        }
        self.note(&mut known, now);
    }

    /// Tells of a change of state. Time alone turns an open breaker into a half-open one, so this is asked before anything
    /// happens to it as well as after.
    fn note(&self, known: &mut BreakerPair, now: Timestamp) {
        let to = self.state(known, now);
        let from = std::mem::replace(&mut known.told, to);
        if from == to {
            return;
        }
        let (breaker, error) = (self.name.here, known.last_error.clone());
        let why = error.as_deref().unwrap_or_default();
        tracing::warn!(breaker, from = from.as_str(), to = to.as_str(), error = why, "circuit breaker moved");
        if known.moves.len() == MOVES_MAX {
            known.moves.pop_front();
        }
        known.moves.push_back(BreakerMove { at: now, breaker, from, to, error });
    }
}

impl SharedBreakerView {
    fn at(now: Timestamp, standing: &BreakerStanding) -> Self {
        let open_until = standing.probes_in.map(|span| now + span);
        Self { away: false, state: standing.state, failures: standing.failures, open_until }
    }

    /// An open breaker whose time is over is half-open, heard of or not.
    fn state_at(&self, now: Timestamp) -> BreakerState {
        match self.open_until {
            Some(until) if until <= now => BreakerState::HalfOpen,
            _ => self.state,
        }
    }
}

//! The circuit breaker of this process, and the one that all replicas share.
//!
//! The shared breaker decides while it answers. The local one records every call of this process too, so that it has a
//! history when it must decide alone.

use std::collections::VecDeque;
use std::sync::Arc;

use lockgate_core::breaker::{Breaker, BreakerSettings, BreakerState, Ticket};
use lockgate_core::time::Timestamp;
use lockgate_ports::{
    BreakerAnswer, BreakerMove, BreakerStanding, BreakerView, CallOutcome, Clock, Counters, CountersAway, Sharing,
};
use parking_lot::Mutex;

/// Changes of state kept until they are read; older ones are dropped.
const MOVES_MAX: usize = 64;

/// The breaker's name in this process, and among the replicas.
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
    /// The state that was last reported.
    told: BreakerState,
    moves: VecDeque<BreakerMove>,
}

/// The shared breaker when it last answered.
struct SharedBreakerView {
    away: bool,
    state: BreakerState,
    failures: u32,
    open_until: Option<Timestamp>,
}

/// Permission to make one call.
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

    /// Whether a call would be allowed now, as far as this process knows.
    pub(crate) fn lets_through(&self) -> bool {
        let (now, known) = (self.clock.now(), self.known.lock());
        let open_until = match self.sharing(&known) {
            Sharing::Shared => known.shared.open_until,
            Sharing::Alone | Sharing::LocalFallback => known.own.opens_until(),
        };
        open_until.is_none_or(|until| until <= now)
    }

    /// Asks for permission to make a call. None: the call must not be made.
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

    /// Reports the outcome of a call.
    pub(crate) async fn tell(&self, admitted: CallPermit, result: Result<(), Arc<str>>) {
        let outcome = if result.is_ok() { CallOutcome::Succeeded } else { CallOutcome::Failed };
        self.tell_own(admitted.own, result);
        if let (Some(counters), Some(ticket)) = (&self.counters, admitted.shared) {
            self.heard(counters.tell(self.name.shared, &self.settings, ticket, outcome).await);
        }
    }

    /// Reads the shared breaker, for views that would otherwise be as old as the latest call.
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

    /// The changes of state since the last call of this function.
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
        // Ask first: an open breaker whose time is over becomes half-open before it allows a call.
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

    /// Records a change of state. Time alone turns an open breaker into a half-open one, so this is called before each
    /// operation as well as after it.
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

    /// An open breaker whose time is over counts as half-open, whether it answered or not.
    fn state_at(&self, now: Timestamp) -> BreakerState {
        match self.open_until {
            Some(until) if until <= now => BreakerState::HalfOpen,
            _ => self.state,
        }
    }
}

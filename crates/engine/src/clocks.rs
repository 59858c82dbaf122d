//! Clocks that jump: this machine's, which its guarded clock does not follow, and the Store's, which is guarded here.

use std::time::Duration;

use lockgate_core::clock_guard::{ClockGuard, SKEW_MAX, stamped_ahead};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Clock, ClockState};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::metrics::{ClockMetrics, Whose};

/// What the Store said longer ago is not compared with anything: how long the answer was on its way cannot be told.
const PROMPT: Duration = Duration::from_millis(500);

#[derive(Default)]
pub(crate) struct Clocks {
    store: Mutex<Option<StoreClock>>,
    /// What was last told of the machine's clock and of the Store's.
    seen: Mutex<[ClockState; 2]>,
    /// What is known of stamps that lie ahead.
    stamps: Mutex<ClockStamps>,
}

/// Stamps that a clock made which was ahead.
#[derive(Default)]
struct ClockStamps {
    /// The newest one that was found at the start, when that was, and how far ahead it was.
    found: Option<(Timestamp, Instant, Duration)>,
    /// How often something was found to have to be brought back, perhaps, and how many of these were dealt with.
    suspicions: u64,
    answered: u64,
    /// It was counted.
    counted: bool,
}

/// All that was suspected when stamps were last looked at. What is suspected later wants another look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suspicion(u64);

/// The Store's clock as this process saw it.
struct StoreClock {
    began: Instant,
    guard: ClockGuard,
    state: ClockState,
    /// The jump that is not followed was there when the process started: its own clock may be the wrong one.
    since_start: bool,
}

impl StoreClock {
    /// The first look. A clock that is far from this process's own cannot be believed at once, and neither can the own one.
    fn meet(said: Timestamp, own: Timestamp, asked: Instant, settle: Duration) -> Self {
        let apart = said.since(own).max(own.since(said)) > SKEW_MAX;
        let guard = ClockGuard::new(if apart { own } else { said }, Duration::ZERO);
        let state = ClockState { settle, ..ClockState::default() };
        Self { began: asked, guard, state, since_start: apart }
    }

    fn now(&self, said: Timestamp) -> Timestamp {
        let kept = self.guard.at(self.began.elapsed());
        match self.state.jump {
            None => said,
            // What the later clock alone says is not acted on: it cannot be taken back.
            Some(_) if self.since_start => said.min(kept),
            Some(_) => kept,
        }
    }
}

impl Clocks {
    /// The Store's time, which it said when it was asked then: its own, unless that jumped and has not stood for long. Processes
    /// that saw it before the jump all go on by the same time; one that starts meanwhile goes by its `own` if that is earlier.
    pub(crate) fn of_store(&self, said: Timestamp, asked: Instant, own: Timestamp, settle: Duration) -> Timestamp {
        let (mut store, is_prompt) = (self.store.lock(), asked.elapsed() <= PROMPT);
        if store.is_none() && !is_prompt {
            return said;
        }
        let store = store.get_or_insert_with(|| StoreClock::meet(said, own, asked, settle));
        let steady = store.began.elapsed();
        if is_prompt {
            let (_, turn) = store.guard.read(said, steady, settle);
            store.state.count(turn);
        }
        store.state.jump = store.guard.jump(steady);
        store.since_start &= store.state.jump.is_some();
        store.now(said)
    }

    /// The newest stamp of the Store at the start, and the time.
    pub(crate) fn found_stamp(&self, newest: Timestamp, right: Timestamp) {
        let Some(ahead) = stamped_ahead(newest, right) else { return };
        let mut stamps = self.stamps.lock();
        stamps.found = Some((newest, Instant::now(), ahead));
        stamps.suspicions += 1;
    }

    /// Whether something may have been stamped ahead, and the time has been the same by all clocks for long enough.
    pub(crate) fn may_bring_back(&self, machine: &dyn Clock) -> Option<Suspicion> {
        let states = self.states(machine);
        let stamps = self.stamps.lock();
        let stood = stamps.found.is_none_or(|(_, since, _)| since.elapsed() >= machine.state().settle);
        let calm = stood && states.iter().all(|(_, state)| state.jump.is_none());
        (calm && stamps.suspicions > stamps.answered).then_some(Suspicion(stamps.suspicions))
    }

    /// All stamps were looked at since then. A clock that was set back meanwhile has rows that were passed already.
    pub(crate) fn brought_back(&self, seen: Suspicion) {
        let mut stamps = self.stamps.lock();
        stamps.answered = seen.0;
        (stamps.found, stamps.counted) = (None, false);
    }

    /// How far the newest stamp of the start was ahead, as long as what it implies is not dealt with and time has not reached it.
    fn stamps_ahead(&self, machine: &dyn Clock) -> Option<Duration> {
        let (newest, _, ahead) = self.stamps.lock().found?;
        (newest > machine.now()).then_some(ahead)
    }

    fn states(&self, machine: &dyn Clock) -> [(Whose, ClockState); 2] {
        let store = self.store.lock().as_ref().map_or_else(ClockState::default, |store| store.state);
        [(Whose::Machine, machine.state()), (Whose::Store, store)]
    }

    /// Clocks that jumped and are not followed, each in a sentence.
    pub(crate) fn told(&self, machine: &dyn Clock) -> Vec<String> {
        let stamps = self.stamps_ahead(machine).map(|ahead| tell_stamps(ahead, machine.state().settle));
        let since_start = self.is_since_start();
        self.states(machine).into_iter().filter_map(|(whose, state)| tell(whose, state, since_start)).chain(stamps).collect()
    }

    /// Whether the Store's clock was far from this process's own when this process started, and still is.
    fn is_since_start(&self) -> bool {
        self.store.lock().as_ref().is_some_and(|store| store.since_start)
    }

    /// Whether the Store's clock shows a time that it should not.
    pub(crate) fn store_jumped(&self) -> bool {
        self.store.lock().as_ref().is_some_and(|store| store.state.jump.is_some())
    }

    /// Says what clocks did since it was last asked.
    pub(crate) fn watch(&self, machine: &dyn Clock, metrics: &ClockMetrics) {
        self.watch_stamps(machine, metrics);
        let (states, since_start) = (self.states(machine), self.is_since_start());
        let mut seen = self.seen.lock();
        for ((whose, now), before) in states.into_iter().zip(seen.iter_mut()) {
            metrics.jumped(whose, now.jumps - before.jumps);
            metrics.is_ahead(whose, now.jump.map_or(0.0, |jump| seconds(jump.ahead_ms)));
            match tell(whose, now, since_start) {
                Some(what) if now.jumps > before.jumps => tracing::warn!(clock = whose.name(), "{what}"),
                None if before.jump.is_some() && now.followed == before.followed => {
                    tracing::info!(clock = whose.name(), "clock jump over; the jump was not followed");
                }
                _ => {}
            }
            if now.followed > before.followed {
                let by = seconds(now.last_followed_ms);
                if now.last_followed_ms < 0 {
                    self.stamps.lock().suspicions += 1;
                }
                tracing::warn!(clock = whose.name(), by_seconds = by, "clock jump persists and is now followed");
            }
            *before = now;
        }
    }

    fn watch_stamps(&self, machine: &dyn Clock, metrics: &ClockMetrics) {
        let ahead = self.stamps_ahead(machine);
        metrics.is_ahead(Whose::Stamps, ahead.map_or(0.0, |ahead| ahead.as_secs_f64()));
        let is_new = ahead.is_some() && !std::mem::replace(&mut self.stamps.lock().counted, ahead.is_some());
        if let Some(ahead) = ahead.filter(|_| is_new) {
            metrics.jumped(Whose::Stamps, 1);
            tracing::warn!(ahead_seconds = ahead.as_secs(), "{}", tell_stamps(ahead, machine.state().settle));
        }
    }
}

fn tell_stamps(ahead: Duration, settle: Duration) -> String {
    let (ahead, settle) = (ahead.as_secs(), settle.as_secs());
    format!(
        "the Store has stamps that were {ahead} s ahead of the clock at the start: a clock was ahead then, or is behind now; what was \
         stamped ahead is brought back if the clock stands for {settle} s"
    )
}

fn tell(whose: Whose, state: ClockState, since_start: bool) -> Option<String> {
    let jump = state.jump?;
    let (by, way) = (seconds(jump.ahead_ms).abs(), if jump.ahead_ms > 0 { "ahead" } else { "back" });
    if since_start && whose == Whose::Store {
        let (way, stood, settle) =
            (if jump.ahead_ms > 0 { "ahead of" } else { "behind" }, jump.stood.as_secs(), state.settle.as_secs());
        return Some(format!(
            "the Store's clock was {by:.1} s {way} the clock of this process when it started {stood} s ago: one of the two is wrong; \
             schedules go by the earlier of the two, and by the Store's if it stands for {settle} s"
        ));
    }
    let clock = match whose {
        Whose::Machine => "the clock of this machine",
        Whose::Store | Whose::Stamps => "the Store's clock",
    };
    let (stood, settle) = (jump.stood.as_secs(), state.settle.as_secs());
    Some(format!(
        "{clock} jumped {by:.1} s {way}, {stood} s ago; work goes on by the time before that, and follows it if it stands for {settle} s"
    ))
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a jump that people read")]
fn seconds(millis: i64) -> f64 {
    millis as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const BASE: Timestamp = Timestamp::from_millis(1_767_225_600_000);
    const HOUR: Duration = Duration::from_secs(3_600);
    const SETTLE: Duration = Duration::from_secs(600);

    #[tokio::test(start_paused = true)]
    async fn a_jump_of_the_stores_clock_is_not_followed_before_it_has_stood() {
        let (clocks, began) = (Clocks::default(), Instant::now());
        let right = || BASE + began.elapsed();
        let ask = |wrong: Duration| clocks.of_store(right() + wrong, Instant::now(), right(), SETTLE);
        assert_eq!(ask(Duration::ZERO), BASE);
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(ask(HOUR), BASE + Duration::from_secs(5));
        assert!(clocks.told(&FrozenClock)[0].starts_with("the Store's clock jumped 3600.0 s ahead, 0 s ago"));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(ask(Duration::ZERO), BASE + Duration::from_secs(10));
        assert!(clocks.told(&FrozenClock).is_empty());
        ask(HOUR);
        tokio::time::advance(SETTLE).await;
        assert_eq!(ask(HOUR), BASE + Duration::from_secs(610) + HOUR);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_far_from_the_own_clock_at_the_start_is_doubted_until_it_has_stood() {
        for (stores, own, told) in [(HOUR, Duration::ZERO, "3600.0 s ahead of"), (Duration::ZERO, HOUR, "3600.0 s behind")] {
            let (clocks, began) = (Clocks::default(), Instant::now());
            let own = || BASE + own + began.elapsed();
            let ask = |said: Duration| clocks.of_store(BASE + said + began.elapsed(), Instant::now(), own(), SETTLE);
            assert_eq!(ask(stores), BASE, "the earlier of the two");
            let found = clocks.told(&FrozenClock);
            assert!(found[0].starts_with(&format!("the Store's clock was {told} the clock of this process")), "{found:?}");
            assert!(clocks.store_jumped(), "nothing is deleted meanwhile");
            tokio::time::advance(Duration::from_secs(5)).await;
            assert_eq!(ask(stores), BASE + Duration::from_secs(5));
            tokio::time::advance(SETTLE).await;
            assert_eq!(ask(stores), BASE + stores + Duration::from_secs(605), "it stood");
            assert!(clocks.told(&FrozenClock).is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_first_answer_says_nothing_of_clocks() {
        let (clocks, asked) = (Clocks::default(), Instant::now());
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(clocks.of_store(BASE, asked, BASE + Duration::from_secs(90), SETTLE), BASE);
        assert!(clocks.told(&FrozenClock).is_empty());
    }

    #[test]
    fn a_clock_that_is_set_back_while_stamps_are_looked_at_wants_another_look() {
        let metrics = crate::metrics::Metrics::new(&mut prometheus_client::registry::Registry::default()).clocks;
        let (clocks, back) = (Clocks::default(), Back(AtomicU64::new(0)));
        let set_back = || {
            back.0.fetch_add(1, Ordering::Relaxed);
            clocks.watch(&back, &metrics);
        };
        assert_eq!(clocks.may_bring_back(&back), None);
        set_back();
        let seen = clocks.may_bring_back(&back).expect("a clock was set back");
        set_back();
        clocks.brought_back(seen);
        let again = clocks.may_bring_back(&back).expect("it was set back once more");
        clocks.brought_back(again);
        assert_eq!(clocks.may_bring_back(&back), None);
    }

    /// A clock that was set back so often, and followed.
    struct Back(AtomicU64);

    impl Clock for Back {
        fn now(&self) -> Timestamp {
            BASE
        }

        fn state(&self) -> ClockState {
            let times = self.0.load(Ordering::Relaxed);
            ClockState { jumps: times, followed: times, last_followed_ms: -3_600_000, ..ClockState::default() }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_took_long_is_not_taken_for_a_jump() {
        let (clocks, asked) = (Clocks::default(), Instant::now());
        clocks.of_store(BASE, asked, BASE, SETTLE);
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(clocks.of_store(BASE, asked, BASE, SETTLE), BASE);
        assert!(clocks.told(&FrozenClock).is_empty());
    }

    struct FrozenClock;

    impl Clock for FrozenClock {
        fn now(&self) -> Timestamp {
            BASE
        }
    }
}

//! Whether each loop still comes round.
//!
//! A loop marks when it rests, when it goes on, and every commit in between, so a round may be long as long as it moves.
//! Time counts only while this process itself runs: one that was stopped, or starved of CPU, has no stuck loops for that.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

tokio::task_local! {
    /// The pulse of the loop whose task this is.
    static OWN: Arc<Pulse>;
}

/// How often pulses are felt, and the most that one look adds to a loop's silence.
pub(super) const FEEL_EVERY: Duration = Duration::from_secs(1);

/// The life of one loop.
pub(crate) struct Pulse {
    name: &'static str,
    beat: Mutex<LoopBeat>,
    /// What its next tick is drawn from.
    dice: Mutex<u64>,
}

struct LoopBeat {
    /// Grows with every mark.
    count: u64,
    last: Instant,
    /// The rest that the loop is in; zero in a round.
    rest: Duration,
    leads: Leads,
    /// The leases that it holds.
    led: BTreeSet<&'static str>,
    /// What the latest look saw.
    felt: u64,
    /// How long nothing moved, as far as we could have seen it.
    silent: Duration,
}

/// Whether this process leads a loop that one process runs for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// Every process has this loop for itself.
    Own,
    /// Somebody else does.
    Not,
    /// Since this epoch of the lease.
    Since(u64),
}

/// A loop as people see it.
#[derive(Clone, Debug)]
pub struct LoopView {
    pub name: &'static str,
    pub stuck: bool,
    /// How long ago it last moved.
    pub moved_ago: Duration,
    pub leads: Leads,
}

impl Pulse {
    pub(super) fn new(name: &'static str, seed: u64) -> Arc<Self> {
        let beat = LoopBeat {
            count: 0,
            last: Instant::now(),
            rest: Duration::ZERO,
            leads: Leads::Own,
            led: BTreeSet::new(),
            felt: 0,
            silent: Duration::ZERO,
        };
        Arc::new(Self { name, beat: Mutex::new(beat), dice: Mutex::new(seed) })
    }

    /// Up to a tenth less than `every`.
    fn draw(&self, every: Duration) -> Duration {
        let mut dice = self.dice.lock();
        // SplitMix64: any seed is a good one.
        *dice = dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*dice ^ (*dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let part = u32::try_from(mixed >> 54).unwrap_or(0);
        every - every / (10 * 1024) * part
    }

    fn mark(&self, rest: Duration) {
        let mut beat = self.beat.lock();
        beat.count += 1;
        beat.last = Instant::now();
        beat.rest = rest;
    }

    pub(super) fn feel(&self, passed: Duration) {
        let mut beat = self.beat.lock();
        beat.silent = if beat.count == beat.felt { beat.silent + passed.min(FEEL_EVERY * 2) } else { Duration::ZERO };
        beat.felt = beat.count;
    }

    /// The leases of the loop, which are to be given up: it ends.
    pub(crate) fn take_led(&self) -> BTreeSet<&'static str> {
        std::mem::take(&mut self.beat.lock().led)
    }

    pub(super) fn view(&self, stuck_after: Duration) -> LoopView {
        let beat = self.beat.lock();
        LoopView {
            name: self.name,
            stuck: beat.silent > beat.rest + stuck_after,
            moved_ago: beat.last.elapsed(),
            leads: beat.leads,
        }
    }
}

/// Runs a loop under its pulse.
pub(crate) async fn beating(pulse: Arc<Pulse>, run: impl Future<Output = ()>) {
    OWN.scope(pulse, run).await;
}

/// The loop of this task rests, for at most so long.
pub(crate) fn idle(at_most: Duration) {
    mark(at_most);
}

/// The loop of this task, if it is one, came further.
pub(crate) fn progress() {
    mark(Duration::ZERO);
}

/// When the loop of this task comes round again: never later than it should, and not in step with the same loop of other processes
/// that were started together.
pub(crate) fn jittered(every: Duration) -> Duration {
    OWN.try_with(|pulse| pulse.draw(every)).unwrap_or(every)
}

fn mark(rest: Duration) {
    // Calls of clients end up here too, and are nobody's pulse.
    let _ = OWN.try_with(|pulse| pulse.mark(rest));
}

/// Whether the loop of this task leads, by this lease.
pub(crate) fn leading(lease: &'static str, epoch: Option<u64>) {
    let _ = OWN.try_with(|pulse| {
        let mut beat = pulse.beat.lock();
        beat.leads = epoch.map_or(Leads::Not, Leads::Since);
        if epoch.is_some() {
            beat.led.insert(lease);
        } else {
            beat.led.remove(lease);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[tokio::test(start_paused = true)]
    async fn a_loop_is_stuck_when_it_outstays_its_rest() {
        let pulse = Pulse::new("slow", 7);
        let felt = pulse.clone();
        let is_stuck = |seconds: u64| {
            (0..seconds).for_each(|_| felt.feel(FEEL_EVERY));
            felt.view(LIMIT).stuck
        };
        beating(pulse, async {
            idle(Duration::from_secs(30));
            leading("lease", Some(7));
            assert!(!is_stuck(91) && is_stuck(1));
            progress();
            assert!(!is_stuck(61) && is_stuck(1), "in a round no rest is allowed for");
            progress();
            assert!(!is_stuck(1));
        })
        .await;
        assert_eq!(felt.view(LIMIT).leads, Leads::Since(7));
        assert_eq!((felt.take_led(), felt.take_led()), (BTreeSet::from(["lease"]), BTreeSet::new()));
    }

    #[tokio::test(start_paused = true)]
    async fn ticks_come_up_to_a_tenth_early_and_not_in_step() {
        let every = Duration::from_secs(10);
        let draws = |seed| {
            let pulse = Pulse::new("drawn", seed);
            (0..100).map(|_| pulse.draw(every)).collect::<Vec<_>>()
        };
        let (some, others) = (draws(1), draws(2));
        assert!(some.iter().all(|rest| (Duration::from_secs(9)..=every).contains(rest)));
        assert!(some.iter().max() > some.iter().min().map(|least| *least + Duration::from_millis(800)).as_ref());
        assert_eq!(some.iter().zip(&others).filter(|(one, other)| one == other).count(), 0);
        assert_eq!(some, draws(1), "the same seed, the same ticks");
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_the_whole_process_stood_still_does_not_count() {
        let pulse = Pulse::new("stopped", 7);
        pulse.mark(Duration::ZERO);
        pulse.feel(FEEL_EVERY);
        pulse.feel(Duration::from_secs(3_600));
        assert!(!pulse.view(LIMIT).stuck);
    }
}

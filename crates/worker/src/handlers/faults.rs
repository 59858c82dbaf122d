//! Injected faults around every built-in handler: for drills, and for testing retries and timeouts.

use std::fmt;
use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;
use crate::worker::Worker;

/// The exit code that shells report for a process killed by kill -9, so that a supervisor reacts as to that.
const CRASHED: i32 = 137;
/// The beginning of the error of an attempt that was made to fail, so that people recognise it.
const INJECTED: &str = "injected: this worker lets attempts fail on purpose";

/// A probability, from 0 (never) to 1 (always).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Chance(f64);

impl Chance {
    /// None for a number that is no probability.
    pub fn new(chance: f64) -> Option<Self> {
        (0.0..=1.0).contains(&chance).then_some(Self(chance))
    }

    /// `roll` is below 1, so that a probability of 1 always hits.
    fn hits(self, roll: f64) -> bool {
        roll < self.0
    }
}

/// The faults of an attempt, drawn anew for each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The attempt fails and may be retried.
    pub error: Chance,
    /// The attempt does not end by itself: only its timeout ends it, or a cancel.
    pub hang: Chance,
    /// The attempt takes longer.
    pub slow: Option<Slow>,
    /// The whole process ends at once, with exit code 137, as after kill -9.
    pub crash: Chance,
}

/// A sleep before the handler begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    pub chance: Chance,
    pub up_to: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InjectedEnd {
    Crash,
    Hang,
    Error,
}

/// The faults drawn for one attempt.
#[derive(Clone, Debug, PartialEq)]
struct InjectedFault {
    sleep: Option<Duration>,
    end: Option<InjectedEnd>,
}

impl Faults {
    /// Every fault has its own rolls even if it is off, so that the rolls of the others do not change.
    fn draw(&self, mut roll: impl FnMut() -> f64) -> InjectedFault {
        let rolls: [f64; 5] = std::array::from_fn(|_| roll());
        let [slow, share, crash, hang, error] = rolls;
        let sleep = self.slow.filter(|late| late.chance.hits(slow)).map(|late| late.up_to.mul_f64(share));
        let ends = [
            (InjectedEnd::Crash, self.crash.hits(crash)),
            (InjectedEnd::Hang, self.hang.hits(hang)),
            (InjectedEnd::Error, self.error.hits(error)),
        ];
        InjectedFault { sleep, end: ends.into_iter().find(|(_, hit)| *hit).map(|(end, _)| end) }
    }

    async fn suffer(&self, context: &Context) -> Result<(), JobError> {
        let InjectedFault { sleep, end } = self.draw(roll);
        if let Some(span) = sleep {
            tokio::time::sleep(span).await;
        }
        match end {
            None => Ok(()),
            Some(InjectedEnd::Error) => Err(JobError::retryable(INJECTED)),
            Some(InjectedEnd::Hang) => pending().await,
            Some(InjectedEnd::Crash) => {
                tracing::error!(job_id = context.job_id(), "injected: this worker crashes on purpose");
                std::process::exit(CRASHED)
            }
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [("error", self.error), ("hang", self.hang), ("crash", self.crash)];
        let wanted = named.into_iter().filter(|(_, chance)| *chance != Chance::default());
        let mut words: Vec<String> = wanted.map(|(name, chance)| format!("{name}={}", chance.0)).collect();
        words.extend(self.slow.map(|late| format!("slow={}:{:?}", late.chance.0, late.up_to)));
        f.write_str(&words.join(","))
    }
}

/// In [0, 1).
fn roll() -> f64 {
    // Without randomness only faults with probability 1 happen.
    share(getrandom::u32().unwrap_or(u32::MAX))
}

fn share(bits: u32) -> f64 {
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// Registers handlers behind the faults. Without faults they are registered directly.
pub(super) struct HandlerRegistrar {
    worker: Worker,
    faults: Option<Arc<Faults>>,
}

impl HandlerRegistrar {
    pub(super) fn new(worker: Worker, faults: Option<Faults>) -> Self {
        Self { worker, faults: faults.map(Arc::new) }
    }

    pub(super) fn handle<F, Fut, T>(self, topic: &str, handler: F) -> Self
    where
        F: Fn(Context, Payload) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, JobError>> + Send + 'static,
        T: Serialize + 'static,
    {
        let Self { worker, faults } = self;
        let Some(faults) = faults else { return Self { worker: worker.handle(topic, handler), faults: None } };
        let (drawn, handler) = (faults.clone(), Arc::new(handler));
        let worker = worker.handle(topic, move |context: Context, payload| {
            let (drawn, handler) = (drawn.clone(), handler.clone());
            async move {
                drawn.suffer(&context).await?;
                handler(context, payload).await
            }
        });
        Self { worker, faults: Some(faults) }
    }

    /// Records why a handler cannot be registered.
    pub(super) fn mistake(self, text: String) -> Self {
        Self { worker: self.worker.mistake(text), faults: self.faults }
    }

    pub(super) fn into_worker(self) -> Worker {
        self.worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 10_000;

    fn chance(chance: f64) -> Chance {
        Chance::new(chance).unwrap()
    }

    /// Numbers in [0, 1), the same for the same seed.
    fn seeded(mut seed: u64) -> impl FnMut() -> f64 {
        move || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            share((seed >> 32) as u32)
        }
    }

    fn fates(faults: &Faults, seed: u64) -> Vec<InjectedFault> {
        let mut rolls = seeded(seed);
        (0..ROUNDS).map(|_| faults.draw(&mut rolls)).collect()
    }

    fn some() -> Faults {
        let slow = Slow { chance: chance(0.2), up_to: Duration::from_millis(500) };
        Faults { error: chance(0.1), hang: chance(0.01), slow: Some(slow), crash: Chance::default() }
    }

    #[test]
    fn only_probabilities_are_chances() {
        for wrong in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Chance::new(wrong), None, "{wrong}");
        }
        assert!(!chance(0.0).hits(0.0), "never");
        assert!(chance(1.0).hits(share(u32::MAX)), "always");
    }

    #[test]
    fn faults_come_as_often_as_was_said_and_the_same_seed_brings_the_same() {
        let drawn = fates(&some(), 7);
        assert_eq!(drawn, fates(&some(), 7));
        assert_ne!(drawn, fates(&some(), 8));
        let count = |end: InjectedEnd| drawn.iter().filter(|fate| fate.end == Some(end)).count();
        assert!((800..1_200).contains(&count(InjectedEnd::Error)), "{}", count(InjectedEnd::Error));
        assert!((50..200).contains(&count(InjectedEnd::Hang)), "{}", count(InjectedEnd::Hang));
        assert_eq!(count(InjectedEnd::Crash), 0);
        let sleeps: Vec<Duration> = drawn.iter().filter_map(|fate| fate.sleep).collect();
        assert!((1_700..2_300).contains(&sleeps.len()), "{}", sleeps.len());
        assert!(sleeps.iter().all(|span| *span < Duration::from_millis(500)));
    }

    #[test]
    fn nothing_comes_unasked_and_a_crash_comes_before_all_else() {
        let calm = InjectedFault { sleep: None, end: None };
        assert!(fates(&Faults::default(), 7).iter().all(|fate| *fate == calm));
        let always = chance(1.0);
        let doomed = Faults { error: always, hang: always, slow: None, crash: always };
        assert!(fates(&doomed, 7).iter().all(|fate| fate.end == Some(InjectedEnd::Crash)));
    }

    #[test]
    fn they_are_told_as_they_were_asked_for() {
        assert_eq!(some().to_string(), "error=0.1,hang=0.01,slow=0.2:500ms");
        assert_eq!(Faults { crash: chance(1.0), ..Faults::default() }.to_string(), "crash=1");
    }
}

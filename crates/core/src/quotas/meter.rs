//! How many jobs wait somewhere, and how soon they are taken.

use std::time::Duration;

use crate::time::Timestamp;

/// How far back the pace looks.
const MEMORY_S: f64 = 5.0;
/// Slower than this nothing moves at all.
const STANDSTILL: f64 = 0.001;
/// Nobody is sent away for longer: by then everything may have changed.
const AWAY_MAX: Duration = Duration::from_secs(600);
/// Who comes back sooner costs more than it gets.
const AWAY_MIN: Duration = Duration::from_secs(1);
/// Where nobody knows the pace.
const AWAY_UNKNOWN: Duration = Duration::from_secs(10);

/// Looked at now and then; in between it reckons with what was let in and with the pace.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    at: Timestamp,
    waiting: u64,
    admitted: u64,
    /// How many were ever taken, at the last look.
    taken: Option<u64>,
    /// Jobs taken in a second when there are enough of them. None until something was taken.
    pace: Option<f64>,
    /// Jobs whose senders were told to come back, and when they were counted.
    promised: (f64, Timestamp),
}

impl Meter {
    /// A look: how many wait, and how many were ever taken.
    pub fn observe(&mut self, now: Timestamp, waiting: u64, taken: u64) {
        let seconds = now.since(self.at).as_secs_f64();
        // A count that went back began anew.
        if let Some(new) = self.taken.and_then(|before| taken.checked_sub(before)).filter(|_| seconds > 0.0) {
            let rate = new as f64 / seconds;
            // Without a backlog, what is taken is what comes: that says how fast it can be at least.
            let busy = self.waiting > 0 && waiting > 0;
            self.pace = match self.pace {
                None => (rate > 0.0).then_some(rate),
                Some(pace) if busy => Some(pace + (rate - pace) * (1.0 - (-seconds / MEMORY_S).exp())),
                Some(pace) => Some(pace.max(rate)),
            };
        }
        // One that went back may have been missed this time, and is not the count to go on from.
        let went_back = self.taken.is_some_and(|before| taken < before);
        (self.at, self.waiting, self.admitted) = (now, waiting, 0);
        self.taken = (!went_back).then_some(taken);
    }

    pub fn admit(&mut self, jobs: u64) {
        self.admitted += jobs;
    }

    /// How many wait now, as far as can be told.
    pub fn waiting(&self, now: Timestamp) -> u64 {
        let gone = self.pace.unwrap_or(0.0) * now.since(self.at).as_secs_f64();
        (self.waiting + self.admitted).saturating_sub(gone as u64)
    }

    /// How long one more job will wait. None if nobody knows.
    pub fn wait(&self, now: Timestamp) -> Option<Duration> {
        let waiting = self.waiting(now) as f64;
        let pace = self.pace?;
        Some(if waiting == 0.0 { Duration::ZERO } else { seconds(waiting / pace.max(STANDSTILL)) })
    }

    /// Sends a job away until `excess` others are gone, and after those that were sent away earlier.
    pub fn send_away(&mut self, now: Timestamp, excess: u64) -> Duration {
        let Some(pace) = self.pace else { return AWAY_UNKNOWN };
        let pace = pace.max(STANDSTILL);
        let (promised, counted_at) = self.promised;
        let promised = (promised - pace * now.since(counted_at).as_secs_f64()).max(0.0) + 1.0;
        let away = seconds((excess as f64 + promised) / pace);
        // Beyond the longest time nobody's turn is kept.
        if away < AWAY_MAX {
            self.promised = (promised, now);
        }
        away.clamp(AWAY_MIN, AWAY_MAX)
    }

    pub fn pace(&self) -> Option<f64> {
        self.pace
    }
}

fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    /// Looked at every half second; `arrive` and `take` are jobs a second.
    fn after(seconds: i64, arrive: u64, take: u64) -> Meter {
        let (mut meter, mut waiting, mut taken) = (Meter::default(), 0, 0);
        for tick in 1..=seconds * 2 {
            waiting += arrive / 2;
            let gone = waiting.min(take / 2);
            (waiting, taken) = (waiting - gone, taken + gone);
            meter.observe(at(tick * 500), waiting, taken);
        }
        meter
    }

    #[test]
    fn the_pace_under_a_backlog_is_what_is_taken() {
        let meter = after(30, 1_000, 100);
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0, "{meter:?}");
        let wait = meter.wait(at(30_000)).unwrap().as_secs_f64();
        assert!((wait - 270.0).abs() < 5.0, "900 too many a second for 30 s, at 100 a second: {wait}");
    }

    #[test]
    fn without_a_backlog_the_pace_is_the_best_that_was_seen_and_nobody_waits() {
        let meter = after(30, 100, 1_000);
        assert!((meter.pace().unwrap() - 100.0).abs() < 1.0);
        assert_eq!(meter.wait(at(30_000)), Some(Duration::ZERO));
    }

    #[test]
    fn between_looks_it_reckons_with_what_came_and_what_went() {
        let mut meter = after(30, 100, 100);
        meter.admit(1_000);
        assert_eq!(meter.waiting(at(30_000)), 1_000);
        assert_eq!(meter.waiting(at(35_000)), 500);
        assert_eq!(meter.waiting(at(60_000)), 0);
        assert_eq!(meter.wait(at(30_000)).map(|wait| wait.as_secs()), Some(10));
    }

    #[test]
    fn where_nothing_was_ever_taken_nobody_knows() {
        let mut meter = after(5, 100, 0);
        assert_eq!((meter.wait(at(5_000)), meter.send_away(at(5_000), 7)), (None, AWAY_UNKNOWN));
    }

    #[test]
    fn those_who_are_sent_away_come_back_one_after_the_other() {
        let mut meter = after(30, 1_000, 10);
        let now = at(30_000);
        let spans: Vec<u64> = (0..40).map(|_| meter.send_away(now, 20).as_secs()).collect();
        assert!(spans[0] == 2 && (5..=6).contains(&spans[39]), "20 too many and 10 a second: {spans:?}");
        assert!(spans.is_sorted());
        let longest = (0..10_000).map(|_| meter.send_away(now, 20)).max();
        assert_eq!(longest, Some(AWAY_MAX));
        assert_eq!(meter.send_away(at(2_000_000), 0), AWAY_MIN, "promises are forgotten when their time has come");
    }

    #[test]
    fn workers_that_went_away_make_everybody_wait() {
        let mut meter = after(30, 1_000, 100);
        for tick in 61..=200 {
            meter.observe(at(tick * 500), 27_000, 3_000);
        }
        assert!(meter.wait(at(100_000)).unwrap() > Duration::from_secs(86_400));
        meter.observe(at(100_500), 27_000, 3);
        assert!(meter.pace().is_some(), "a count that began anew says nothing");
    }
}

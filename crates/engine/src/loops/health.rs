//! Whether this process could have heard its workers.
//!
//! Silence counts only while we could have heard, and what is late counts only while it could have been stored. Only calls that
//! workers wait for say something about that: one query that is too slow for its deadline must not keep everybody from being
//! called late or lost for as long as it is.

use std::sync::Arc;
use std::time::Duration;

use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::Settings;

/// A row that cannot be read or written is told of for so long after it was last met: longer than everything is looked through.
const TOLD_FOR: Duration = Duration::from_secs(300);

pub(crate) struct StoreHealth {
    /// When this process began to listen: what came before could not be heard.
    began: Instant,
    /// Failures that are less than this apart are one trouble; renewals that are not have a gap between them.
    window: Duration,
    /// How old the last renewal of this edge may be while it still says that the Store answers.
    trusted: Duration,
    /// The longest that a trouble counts for while this edge is renewed all the same.
    defer_max: Duration,
    state: Mutex<HealthState>,
    /// A row that cannot be read.
    damage: Lately,
    /// A row that the Store does not take.
    refusal: Lately,
}

/// What was last met, and when.
#[derive(Default)]
struct Lately(Mutex<Option<(Instant, Arc<str>)>>);

impl Lately {
    fn met(&self, what: &str) {
        *self.0.lock() = Some((Instant::now(), what.into()));
    }

    fn told(&self) -> Option<Arc<str>> {
        self.0.lock().as_ref().filter(|(at, _)| at.elapsed() < TOLD_FOR).map(|(_, what)| what.clone())
    }
}

#[derive(Default)]
struct HealthState {
    trouble: Option<StoreTrouble>,
    /// When the last renewal of this edge that succeeded was asked for.
    renewed: Option<Instant>,
    /// When it last could not be renewed, or was not because this process stood still.
    unrenewed: Option<Instant>,
    /// Since when it has been renewed without a gap. One call that fails is none, if the next comes in time.
    steady: Option<Instant>,
}

#[derive(Clone, Copy)]
struct StoreTrouble {
    began: Instant,
    last: Instant,
}

impl StoreHealth {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            began: Instant::now(),
            window: settings.lost_after.max(settings.edge_grace),
            trusted: settings.edge_renew * 2,
            defer_max: settings.defer_max,
            state: Mutex::default(),
            damage: Lately::default(),
            refusal: Lately::default(),
        }
    }

    /// A call failed that workers wait for: what they report, or what is decided for them.
    pub(crate) fn cut_off(&self, error: &StoreError) {
        if !self.tells_of_a_row(error) {
            self.unheard();
        }
    }

    /// Whether one row cannot be read or written, which says nothing about others. It is told of then.
    fn tells_of_a_row(&self, error: &StoreError) -> bool {
        match error {
            StoreError::Corrupt(text) => self.damaged(text),
            StoreError::Refused(text) => self.refused(text),
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::UnknownOutcome(_) => return false,
        }
        true
    }

    /// Something cannot be read.
    pub(crate) fn damaged(&self, what: &str) {
        self.damage.met(what);
    }

    /// What could not be read lately.
    pub(crate) fn damage(&self) -> Option<Arc<str>> {
        self.damage.told()
    }

    /// Something cannot be written.
    pub(crate) fn refused(&self, what: &str) {
        self.refusal.met(what);
    }

    /// What could not be written lately.
    pub(crate) fn refusal(&self) -> Option<Arc<str>> {
        self.refusal.told()
    }

    /// A worker spoke, and could not be taken up.
    pub(crate) fn unheard(&self) {
        self.state.lock().troubled(self.window);
    }

    /// Some other call failed. That says something only if this edge was not renewed lately either: its renewal may hang.
    pub(crate) fn store_failed(&self, error: &StoreError) {
        if self.tells_of_a_row(error) {
            return;
        }
        let mut state = self.state.lock();
        let renewed = state.renewed.is_some_and(|at| at.elapsed() <= self.trusted);
        if !renewed {
            state.troubled(self.window);
        }
    }

    /// The lease of this edge was renewed by a call that began then.
    pub(crate) fn renewed(&self, asked: Instant) {
        let mut state = self.state.lock();
        // Not every gap is told of: a process without an edge has nothing to renew, one may be stopped, and a call may hang.
        let gap = state.renewed.is_none_or(|last| last + self.window <= asked);
        state.steady = state.steady.filter(|_| !gap).or_else(|| Some(Instant::now()));
        state.renewed = Some(asked);
    }

    pub(crate) fn not_renewed(&self, error: &StoreError) {
        if !self.tells_of_a_row(error) {
            self.stood_still();
        }
    }

    /// The process was stopped or starved: no worker was heard, and nothing was stored.
    pub(crate) fn stood_still(&self) {
        let mut state = self.state.lock();
        state.unrenewed = Some(Instant::now());
        state.troubled(self.window);
    }

    /// Whether this process has been here since and could hear its workers.
    pub(crate) fn could_hear_since(&self, since: Instant) -> bool {
        self.began <= since && self.could_store_since(since)
    }

    /// Whether what ended since could be stored. A trouble that lasts too long while this edge is renewed all the while is not one of
    /// hearing. Time in which it was not renewed does not count: or a long outage would end worse than a short one.
    pub(crate) fn could_store_since(&self, since: Instant) -> bool {
        let state = self.state.lock();
        let Some(trouble) = state.trouble.filter(|trouble| trouble.last >= since) else { return true };
        let Some(steady) = state.steady else { return false };
        let renewed = state.renewed.is_some_and(|at| at >= since) && state.unrenewed.is_none_or(|at| at < since);
        renewed && trouble.began.max(steady).elapsed() >= self.defer_max
    }

    /// For how long lost-worker detection has been postponed because of a trouble.
    pub(crate) fn deferred(&self) -> Duration {
        let trouble = self.state.lock().trouble.filter(|trouble| trouble.last.elapsed() < self.window);
        trouble.map_or(Duration::ZERO, |trouble| trouble.began.elapsed())
    }
}

impl HealthState {
    fn troubled(&mut self, window: Duration) {
        let now = Instant::now();
        let began = self.trouble.filter(|trouble| trouble.last + window > now).map_or(now, |trouble| trouble.began);
        self.trouble = Some(StoreTrouble { began, last: now });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn away() -> StoreError {
        StoreError::Unavailable("too slow".to_owned())
    }

    /// Whether a worker that was silent for ten seconds would be lost, and an attempt that is late ended.
    fn judges(health: &StoreHealth) -> (bool, bool) {
        let since = Instant::now().checked_sub(Duration::from_secs(10)).expect("later than the start");
        (health.could_hear_since(since), health.could_store_since(since))
    }

    async fn passing(health: &StoreHealth, seconds: u64, each: impl Fn(&StoreHealth, u64)) {
        for second in 0..seconds {
            tokio::time::advance(SECOND).await;
            each(health, second);
        }
    }

    /// The edge is renewed every second, and every fifth a commit fails.
    fn commits_fail(health: &StoreHealth, second: u64) {
        health.renewed(Instant::now());
        if second.is_multiple_of(5) {
            health.cut_off(&away());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_that_always_fails_does_not_keep_the_silent_from_being_lost() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        passing(&health, 30, |health, second| {
            if second.is_multiple_of(2) {
                health.renewed(Instant::now());
            }
            health.store_failed(&away());
        })
        .await;
        assert_eq!(judges(&health), (true, true));
        assert_eq!(health.deferred(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_query_that_fails_while_the_edge_is_not_renewed_counts() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        health.renewed(Instant::now());
        passing(&health, 30, |health, _| health.store_failed(&away())).await;
        assert_eq!(judges(&health), (false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn commits_that_fail_defer_for_three_minutes_if_the_edge_is_renewed() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        passing(&health, 180, commits_fail).await;
        assert_eq!(judges(&health), (false, false));
        assert_eq!(health.deferred(), SECOND * 179);
        passing(&health, 2, commits_fail).await;
        assert_eq!(judges(&health), (true, true));
        // As soon as the edge is not renewed, no worker could be heard after all.
        health.not_renewed(&away());
        assert_eq!(judges(&health), (false, false));
    }

    #[tokio::test(start_paused = true)]
    async fn a_row_that_is_refused_defers_nobody_and_is_told_of_for_a_while() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        passing(&health, 30, |health, _| {
            health.cut_off(&StoreError::Refused("job a: a trigger".to_owned()));
            health.store_failed(&StoreError::Refused("job b: a trigger".to_owned()));
        })
        .await;
        assert_eq!(judges(&health), (true, true));
        assert_eq!(health.deferred(), Duration::ZERO);
        assert_eq!((health.refusal().as_deref(), health.damage()), (Some("job b: a trigger"), None));
        tokio::time::advance(TOLD_FOR).await;
        assert_eq!(health.refusal(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_is_away_defers_for_as_long_as_it_is_and_a_little_more() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        passing(&health, 700, |health, _| health.not_renewed(&away())).await;
        assert_eq!(judges(&health), (false, false));
        passing(&health, 10, |health, _| health.renewed(Instant::now())).await;
        assert_eq!(judges(&health), (false, false));
        passing(&health, 1, |health, _| health.renewed(Instant::now())).await;
        assert_eq!(judges(&health), (true, true));
        assert_eq!(health.deferred(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn commits_that_fail_after_an_outage_defer_as_long_as_others() {
        tokio::time::advance(SECOND * 60).await;
        // With an edge that cannot be renewed, and without one, where other calls fail.
        for outage in [StoreHealth::not_renewed, StoreHealth::store_failed] {
            let health = StoreHealth::new(&Settings::default());
            passing(&health, 20, |health, _| health.renewed(Instant::now())).await;
            passing(&health, 700, |health, _| outage(health, &away())).await;
            passing(&health, 180, |health, second| {
                commits_fail(health, second);
                assert_eq!(judges(health), (false, false), "after {second} s");
            })
            .await;
            assert!(health.deferred() > SECOND * 870, "it is one trouble");
            passing(&health, 2, commits_fail).await;
            assert_eq!(judges(&health), (true, true));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_has_just_come_or_stood_still_heard_nobody() {
        tokio::time::advance(SECOND * 60).await;
        let health = StoreHealth::new(&Settings::default());
        assert_eq!(judges(&health), (false, true));
        passing(&health, 11, |health, _| health.renewed(Instant::now())).await;
        assert_eq!(judges(&health), (true, true));
        health.stood_still();
        assert_eq!(judges(&health), (false, false));
    }
}

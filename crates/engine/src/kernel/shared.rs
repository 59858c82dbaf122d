//! Velocity over all replicas. The policy asks for one place at a time and cannot wait; the counters answer many at once and
//! take a while. So a batch is evaluated until every request has met its first unknown window, the counters are asked for all
//! of those at once, and the requests that waited are evaluated again with what is known by then. A batch that meets no
//! window asks nobody; most others ask once.

use std::cell::RefCell;

use lockgate_core::policy::{Velocity, VelocityWindow};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Counters, VelocityAsk, Visit};

use super::windows::{Entering, Looking, OwnWindows};

pub(super) struct SharedWindows<'a> {
    pub(super) counters: &'a dyn Counters,
    /// They decide while the counters are away, so they hear of every place that was taken from here.
    pub(super) own: &'a OwnWindows,
    pub(super) now: Timestamp,
    pub(super) visit: Visit,
}

/// Places one request was given so far.
type SharedVerdict = Vec<(VelocityAsk, u64)>;

impl SharedWindows<'_> {
    /// One outcome for each of `count` requests. `evaluate` may be called more than once for a request.
    pub(super) async fn evaluate<T>(&self, count: usize, evaluate: impl Fn(usize, &dyn Velocity) -> T) -> Vec<T> {
        let mut outcomes: Vec<Option<T>> = (0..count).map(|_| None).collect();
        let mut given: Vec<SharedVerdict> = vec![SharedVerdict::new(); count];
        let mut open: Vec<usize> = (0..count).collect();
        while !open.is_empty() {
            let (mut waiting, mut asks) = (Vec::new(), Vec::new());
            for place in open {
                let asking = Asking { given: &given[place], visit: self.visit, unknown: RefCell::new(None) };
                let outcome = evaluate(place, &asking);
                match asking.unknown.into_inner() {
                    None => outcomes[place] = Some(outcome),
                    Some(ask) => {
                        waiting.push(place);
                        asks.push(ask);
                    }
                }
            }
            let answers = self.places(&asks).await;
            if answers.len() != asks.len() {
                waiting.drain(..).for_each(|place| outcomes[place] = Some(self.alone(place, &evaluate)));
            }
            for ((place, ask), answer) in waiting.iter().zip(asks).zip(answers) {
                given[*place].push((ask, answer));
            }
            open = waiting;
        }
        outcomes.into_iter().flatten().collect()
    }

    /// Nothing when the counters are away.
    async fn places(&self, asks: &[VelocityAsk]) -> Vec<u64> {
        if asks.is_empty() {
            return Vec::new();
        }
        let Ok(places) = self.counters.places(asks).await else { return Vec::new() };
        if self.visit == Visit::Enter {
            let mut windows = self.own.lock();
            for VelocityAsk { rule, key, job_id, span, .. } in asks {
                windows.enter(&VelocityWindow { rule, key, job_id, now: self.now, span: *span });
            }
        }
        places
    }

    /// By what this process knows.
    fn alone<T>(&self, place: usize, evaluate: &impl Fn(usize, &dyn Velocity) -> T) -> T {
        match self.visit {
            Visit::Enter => evaluate(place, &Entering(self.own)),
            Visit::Look => evaluate(place, &Looking(self.own)),
        }
    }
}

/// Answers what is known and notes the first window that is not. What is evaluated beyond that is thrown away.
struct Asking<'a> {
    given: &'a SharedVerdict,
    visit: Visit,
    unknown: RefCell<Option<VelocityAsk>>,
}

impl Velocity for Asking<'_> {
    fn count(&self, window: &VelocityWindow<'_>) -> u64 {
        let same = |ask: &VelocityAsk| *ask.rule == *window.rule && *ask.key == *window.key;
        if let Some((_, place)) = self.given.iter().find(|(ask, _)| same(ask)) {
            return *place;
        }
        self.unknown.borrow_mut().get_or_insert_with(|| VelocityAsk {
            rule: window.rule.into(),
            key: window.key.into(),
            job_id: window.job_id.into(),
            span: window.span,
            visit: self.visit,
        });
        0
    }
}

#[cfg(test)]
mod tests;

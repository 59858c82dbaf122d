//! Everything the worker holds: attempts it runs or will run, and results the server has not acknowledged.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_proto::v1::{Held, Result as Report};
use tokio::time::Instant;

use super::attempt::Attempt;

enum Entry {
    Going(Arc<Attempt>),
    Finished(Finished),
}

struct Finished {
    report: Report,
    started_at_ms: Option<i64>,
    hidden: bool,
    /// When the result last went out on a stream.
    sent_at: Option<Instant>,
}

/// Ordered by token, so that what is sent after a reattach does not depend on a hash seed.
#[derive(Default)]
pub(crate) struct Ledger {
    held: BTreeMap<String, Entry>,
    highest: u64,
}

impl Ledger {
    /// Takes an assignment. False when its token is already held: the server repeated itself.
    pub(crate) fn take(&mut self, attempt: &Arc<Attempt>) -> bool {
        self.highest = self.highest.max(attempt.assignment.number);
        if self.held.contains_key(attempt.token()) {
            return false;
        }
        self.held.insert(attempt.token().to_owned(), Entry::Going(attempt.clone()));
        true
    }

    /// A result of an earlier life of this worker.
    pub(crate) fn restore(&mut self, report: Report) {
        let token = report.token.clone();
        let finished = Finished { report, started_at_ms: None, hidden: false, sent_at: None };
        self.held.insert(token, Entry::Finished(finished));
    }

    /// Keeps the result until it is acknowledged. False when the attempt was stopped meanwhile and must not be spoken of.
    pub(crate) fn finish(&mut self, attempt: &Attempt, report: Report) -> bool {
        match self.held.get_mut(attempt.token()) {
            Some(entry @ Entry::Going(_)) => {
                let (started_at_ms, hidden) = (attempt.started_at_ms(), attempt.is_hidden());
                *entry = Entry::Finished(Finished { report, started_at_ms, hidden, sent_at: None });
                true
            }
            _ => false,
        }
    }

    /// The server has the result, or does not want it. True when one was held.
    pub(crate) fn acknowledge(&mut self, token: &str) -> bool {
        match self.held.get(token) {
            Some(Entry::Finished(_)) => self.held.remove(token).is_some(),
            _ => false,
        }
    }

    /// Forgets an attempt that no longer counts.
    pub(crate) fn forget(&mut self, token: &str) -> Option<Forgotten> {
        Some(match self.held.remove(token)? {
            Entry::Going(attempt) => Forgotten::Going(attempt),
            Entry::Finished(_) => Forgotten::Finished,
        })
    }

    pub(crate) fn is_held(&self, token: &str) -> bool {
        self.held.contains_key(token)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.held.len()
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    pub(crate) fn going(&self, token: &str) -> Option<&Arc<Attempt>> {
        match self.held.get(token)? {
            Entry::Going(attempt) => Some(attempt),
            Entry::Finished(_) => None,
        }
    }

    pub(crate) fn report(&self, token: &str) -> Option<&Report> {
        match self.held.get(token)? {
            Entry::Going(_) => None,
            Entry::Finished(finished) => Some(&finished.report),
        }
    }

    /// The result, to be sent at once.
    pub(crate) fn report_sent(&mut self, token: &str, now: Instant) -> Option<&Report> {
        match self.held.get_mut(token)? {
            Entry::Going(_) => None,
            Entry::Finished(finished) => {
                finished.sent_at = Some(now);
                Some(&finished.report)
            }
        }
    }

    /// Results sent at or before `then` and still not acknowledged. They no longer count as sent, so each is named once.
    pub(crate) fn unanswered_since(&mut self, then: Instant) -> Vec<String> {
        let overdue = |finished: &mut Finished| finished.sent_at.take_if(|at| *at <= then).is_some();
        let finished = self.held.values_mut().filter_map(|entry| match entry {
            Entry::Going(_) => None,
            Entry::Finished(finished) => Some(finished),
        });
        finished.filter_map(|one| overdue(one).then(|| one.report.token.clone())).collect()
    }

    pub(crate) fn all_going(&self) -> impl Iterator<Item = &Arc<Attempt>> {
        self.held.values().filter_map(|entry| match entry {
            Entry::Going(attempt) => Some(attempt),
            Entry::Finished(_) => None,
        })
    }

    pub(crate) fn all_reports(&self) -> impl Iterator<Item = &Report> {
        self.held.values().filter_map(|entry| match entry {
            Entry::Going(_) => None,
            Entry::Finished(finished) => Some(&finished.report),
        })
    }

    /// What a beat tells the server. An attempt stays here until its result is acknowledged: absence means lost.
    pub(crate) fn inventory(&self) -> Vec<Held> {
        self.held.values().filter_map(Entry::shown).collect()
    }
}

pub(crate) enum Forgotten {
    Going(Arc<Attempt>),
    Finished,
}

impl Entry {
    fn shown(&self) -> Option<Held> {
        let (job_id, token, started_at_ms, hidden) = match self {
            Self::Going(attempt) => {
                let assignment = &attempt.assignment;
                (&assignment.job_id, &assignment.token, attempt.started_at_ms(), attempt.is_hidden())
            }
            Self::Finished(one) => (&one.report.job_id, &one.report.token, one.started_at_ms, one.hidden),
        };
        (!hidden).then(|| Held { job_id: job_id.clone(), token: token.clone(), started_at_ms })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lockgate_proto::v1::Assignment;

    use super::*;

    fn attempt(number: u64, token: &str) -> Arc<Attempt> {
        Arc::new(Attempt::new(Assignment { number, token: token.to_owned(), ..Assignment::default() }))
    }

    fn report(token: &str) -> Report {
        Report { token: token.to_owned(), ..Report::default() }
    }

    #[test]
    fn an_attempt_is_in_the_inventory_until_its_result_is_acknowledged() {
        let mut ledger = Ledger::default();
        let one = attempt(7, "a");
        assert!(ledger.take(&one));
        assert!(!ledger.take(&one), "a repeated assignment is not taken");
        assert_eq!((ledger.inventory().len(), ledger.highest()), (1, 7));
        assert!(!ledger.acknowledge("a"), "nothing to acknowledge before the result");
        assert!(ledger.finish(&one, report("a")));
        assert_eq!(ledger.inventory().len(), 1);
        assert!(ledger.acknowledge("a"));
        assert!(ledger.is_empty());
    }

    #[test]
    fn a_forgotten_attempt_cannot_finish() {
        let mut ledger = Ledger::default();
        let one = attempt(1, "a");
        ledger.take(&one);
        assert!(matches!(ledger.forget("a"), Some(Forgotten::Going(_))));
        assert!(!ledger.finish(&one, report("a")));
    }

    #[test]
    fn a_sent_result_without_an_answer_is_named_once_per_sending() {
        let mut ledger = Ledger::default();
        let sent_at = Instant::now();
        ledger.restore(report("a"));
        ledger.restore(report("not sent"));
        assert!(ledger.report_sent("a", sent_at).is_some());
        assert!(ledger.unanswered_since(sent_at - Duration::from_secs(1)).is_empty());
        assert_eq!(ledger.unanswered_since(sent_at), ["a"]);
        assert!(ledger.unanswered_since(sent_at).is_empty());
        ledger.report_sent("a", sent_at);
        ledger.acknowledge("a");
        assert!(ledger.unanswered_since(sent_at).is_empty());
    }

    #[test]
    fn a_hidden_attempt_is_held_but_not_shown() {
        let mut ledger = Ledger::default();
        let one = attempt(1, "a");
        ledger.take(&one);
        one.hide();
        assert!(ledger.inventory().is_empty() && ledger.is_held("a"));
    }
}

//! Everything that the worker holds: attempts that it runs or will run, and unacknowledged results.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_proto::v1::result::Outcome;
use lockgate_proto::v1::{Held, Result as Report};
use tokio::time::Instant;

use super::attempt::RunningAttempt;

enum HeldAttempt {
    Going(Arc<RunningAttempt>),
    /// The attempt no longer counts, and its handler has not ended yet.
    Stopped(Arc<RunningAttempt>),
    Finished(Finished),
}

struct Finished {
    report: Report,
    started_at_ms: Option<i64>,
    hidden: bool,
    /// When the result last went out on a stream.
    sent_at: Option<Instant>,
}

/// Ordered by token, so that the order of messages after a reattach does not depend on a hash seed.
#[derive(Default)]
pub(crate) struct HeldAttempts {
    held: BTreeMap<String, HeldAttempt>,
    highest: u64,
}

impl HeldAttempts {
    /// Takes an assignment. False if its token is held already, because the server repeated the assignment.
    pub(crate) fn take(&mut self, attempt: &Arc<RunningAttempt>) -> bool {
        self.highest = self.highest.max(attempt.assignment.number);
        if self.held.contains_key(attempt.token()) {
            return false;
        }
        self.held.insert(attempt.token().to_owned(), HeldAttempt::Going(attempt.clone()));
        true
    }

    /// Restores a result of an earlier process of this worker.
    pub(crate) fn restore(&mut self, report: Report) {
        let token = report.token.clone();
        let finished = Finished { report, started_at_ms: None, hidden: false, sent_at: None };
        self.held.insert(token, HeldAttempt::Finished(finished));
    }

    /// Keeps the result until it is acknowledged. The result of an attempt that was stopped meanwhile is dropped, unless the
    /// work was done: it may have to be undone, so the server must be told.
    pub(crate) fn finish(&mut self, attempt: &RunningAttempt, report: Report) -> Removed {
        let done = is_done(&report);
        match self.held.get_mut(attempt.token()) {
            Some(entry) if matches!(entry, HeldAttempt::Going(_)) || (done && matches!(entry, HeldAttempt::Stopped(_))) => {
                let (started_at_ms, hidden) = (attempt.started_at_ms(), attempt.is_hidden());
                *entry = HeldAttempt::Finished(Finished { report, started_at_ms, hidden, sent_at: None });
                Removed::Result
            }
            Some(HeldAttempt::Stopped(_)) => {
                self.held.remove(attempt.token());
                Removed::Gone
            }
            _ => Removed::Nothing,
        }
    }

    /// The server has the result or does not want it. True if a result was held.
    pub(crate) fn acknowledge(&mut self, token: &str) -> bool {
        match self.held.get(token) {
            Some(HeldAttempt::Finished(_)) => self.held.remove(token).is_some(),
            _ => false,
        }
    }

    /// The attempt no longer counts. A running one stays in the inventory until its handler has ended, and one whose work
    /// was done until the server has acknowledged that.
    pub(crate) fn stop(&mut self, token: &str) -> StoppedAttempt {
        match self.held.remove(token) {
            None => StoppedAttempt::Unknown,
            Some(entry @ HeldAttempt::Finished(_)) if entry.is_done() => {
                self.held.insert(token.to_owned(), entry);
                StoppedAttempt::Done
            }
            Some(HeldAttempt::Finished(_)) => StoppedAttempt::Finished,
            Some(HeldAttempt::Going(attempt) | HeldAttempt::Stopped(attempt)) => {
                self.held.insert(token.to_owned(), HeldAttempt::Stopped(attempt.clone()));
                StoppedAttempt::Going(attempt)
            }
        }
    }

    /// The handler of a stopped attempt has ended, or it had none.
    pub(crate) fn let_go(&mut self, token: &str) {
        self.held.remove(token);
    }

    /// Whether an attempt counts, as far as this worker knows.
    pub(crate) fn is_held(&self, token: &str) -> bool {
        self.held.get(token).is_some_and(HeldAttempt::counts)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many attempts count.
    pub(crate) fn len(&self) -> usize {
        self.held.values().filter(|entry| entry.counts()).count()
    }

    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    pub(crate) fn going(&self, token: &str) -> Option<&Arc<RunningAttempt>> {
        match self.held.get(token)? {
            HeldAttempt::Going(attempt) => Some(attempt),
            HeldAttempt::Stopped(_) | HeldAttempt::Finished(_) => None,
        }
    }

    pub(crate) fn report(&self, token: &str) -> Option<&Report> {
        match self.held.get(token)? {
            HeldAttempt::Going(_) | HeldAttempt::Stopped(_) => None,
            HeldAttempt::Finished(finished) => Some(&finished.report),
        }
    }

    /// The result, to be sent now.
    pub(crate) fn report_sent(&mut self, token: &str, now: Instant) -> Option<&Report> {
        match self.held.get_mut(token)? {
            HeldAttempt::Going(_) | HeldAttempt::Stopped(_) => None,
            HeldAttempt::Finished(finished) => {
                finished.sent_at = Some(now);
                Some(&finished.report)
            }
        }
    }

    /// Results sent at or before `then` without an acknowledgement. They no longer count as sent, so each is returned once.
    pub(crate) fn unanswered_since(&mut self, then: Instant) -> Vec<String> {
        let overdue = |finished: &mut Finished| finished.sent_at.take_if(|at| *at <= then).is_some();
        let finished = self.held.values_mut().filter_map(|entry| match entry {
            HeldAttempt::Going(_) | HeldAttempt::Stopped(_) => None,
            HeldAttempt::Finished(finished) => Some(finished),
        });
        finished.filter_map(|one| overdue(one).then(|| one.report.token.clone())).collect()
    }

    pub(crate) fn all_going(&self) -> impl Iterator<Item = &Arc<RunningAttempt>> {
        self.held.values().filter_map(|entry| match entry {
            HeldAttempt::Going(attempt) => Some(attempt),
            HeldAttempt::Stopped(_) | HeldAttempt::Finished(_) => None,
        })
    }

    /// Attempts with a running handler, whether they count or not.
    pub(crate) fn all_running(&self) -> impl Iterator<Item = &Arc<RunningAttempt>> {
        self.held.values().filter_map(|entry| match entry {
            HeldAttempt::Going(attempt) | HeldAttempt::Stopped(attempt) => Some(attempt),
            HeldAttempt::Finished(_) => None,
        })
    }

    pub(crate) fn all_reports(&self) -> impl Iterator<Item = &Report> {
        self.held.values().filter_map(|entry| match entry {
            HeldAttempt::Going(_) | HeldAttempt::Stopped(_) => None,
            HeldAttempt::Finished(finished) => Some(&finished.report),
        })
    }

    /// The inventory of a beat. An attempt stays in it until its result is acknowledged, because absence means lost. A
    /// stopped attempt stays until its handler has ended, because absence means that its slot is free.
    pub(crate) fn inventory(&self) -> Vec<Held> {
        self.held.values().filter_map(HeldAttempt::shown).collect()
    }
}

/// The outcome of an attempt that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Removed {
    Result,
    /// It was stopped before, and its handler has ended now.
    Gone,
    Nothing,
}

/// The state of an attempt that no longer counts.
pub(crate) enum StoppedAttempt {
    Going(Arc<RunningAttempt>),
    Finished,
    /// It succeeded, and the server does not know yet.
    Done,
    Unknown,
}

fn is_done(report: &Report) -> bool {
    matches!(report.outcome, Some(Outcome::Succeeded(_)))
}

impl HeldAttempt {
    fn counts(&self) -> bool {
        !matches!(self, Self::Stopped(_))
    }

    fn is_done(&self) -> bool {
        matches!(self, Self::Finished(finished) if is_done(&finished.report))
    }

    fn shown(&self) -> Option<Held> {
        let (job_id, token, started_at_ms, hidden) = match self {
            Self::Going(attempt) | Self::Stopped(attempt) => {
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
    use lockgate_proto::v1::result::Succeeded;

    use super::*;

    fn attempt(number: u64, token: &str) -> Arc<RunningAttempt> {
        Arc::new(RunningAttempt::new(Assignment { number, token: token.to_owned(), ..Assignment::default() }))
    }

    fn report(token: &str) -> Report {
        Report { token: token.to_owned(), ..Report::default() }
    }

    #[test]
    fn an_attempt_is_in_the_inventory_until_its_result_is_acknowledged() {
        let mut held = HeldAttempts::default();
        let one = attempt(7, "a");
        assert!(held.take(&one));
        assert!(!held.take(&one), "a repeated assignment is not taken");
        assert_eq!((held.inventory().len(), held.highest()), (1, 7));
        assert!(!held.acknowledge("a"), "nothing to acknowledge before the result");
        assert_eq!(held.finish(&one, report("a")), Removed::Result);
        assert_eq!(held.inventory().len(), 1);
        assert!(held.acknowledge("a"));
        assert!(held.is_empty());
    }

    #[test]
    fn a_stopped_attempt_is_in_the_inventory_until_it_is_gone_and_has_no_result() {
        let mut held = HeldAttempts::default();
        let one = attempt(1, "a");
        held.take(&one);
        assert!(matches!(held.stop("a"), StoppedAttempt::Going(_)));
        assert!(matches!(held.stop("a"), StoppedAttempt::Going(_)), "said twice");
        assert!(held.is_empty() && !held.is_held("a") && held.all_going().next().is_none());
        assert_eq!((held.inventory().len(), held.all_running().count()), (1, 1));
        assert!(!held.take(&one), "what was stopped is not begun again");
        assert_eq!(held.finish(&one, report("a")), Removed::Gone);
        assert!(held.inventory().is_empty());
        assert_eq!(held.finish(&one, report("a")), Removed::Nothing);
        assert!(matches!(held.stop("a"), StoppedAttempt::Unknown));
    }

    #[test]
    fn work_that_was_done_is_told_although_it_was_stopped() {
        let done = |token: &str| Report { outcome: Some(Outcome::Succeeded(Succeeded::default())), ..report(token) };
        let mut held = HeldAttempts::default();
        let (one, two) = (attempt(1, "a"), attempt(2, "b"));
        held.take(&one);
        held.take(&two);
        held.stop("a");
        assert_eq!(held.finish(&one, done("a")), Removed::Result);
        assert_eq!(held.finish(&two, done("b")), Removed::Result);
        assert!(matches!(held.stop("b"), StoppedAttempt::Done), "its result was on its way");
        assert_eq!((held.inventory().len(), held.all_reports().count()), (2, 2));
        assert!(held.acknowledge("a") && held.acknowledge("b") && held.is_empty());
    }

    #[test]
    fn a_sent_result_without_an_answer_is_named_once_per_sending() {
        let mut held = HeldAttempts::default();
        let sent_at = Instant::now();
        held.restore(report("a"));
        held.restore(report("not sent"));
        assert!(held.report_sent("a", sent_at).is_some());
        assert!(held.unanswered_since(sent_at - Duration::from_secs(1)).is_empty());
        assert_eq!(held.unanswered_since(sent_at), ["a"]);
        assert!(held.unanswered_since(sent_at).is_empty());
        held.report_sent("a", sent_at);
        held.acknowledge("a");
        assert!(held.unanswered_since(sent_at).is_empty());
    }

    #[test]
    fn a_hidden_attempt_is_held_but_not_shown() {
        let mut held = HeldAttempts::default();
        let one = attempt(1, "a");
        held.take(&one);
        one.hide();
        assert!(held.inventory().is_empty() && held.is_held("a"));
    }
}

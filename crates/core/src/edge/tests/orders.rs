//! Several batches under way at once, by example.

use std::sync::Arc;
use std::time::Duration;

use super::{WALL, edge, env, job, profile};
use crate::edge::{
    Acknowledged, Arrival, EdgeEffect, EdgeState, Greeting, Hello, InventoryItem, Moment, Reconciled, ToWorker,
};
use crate::ids::{AttemptToken, SessionId};
use crate::job::Job;
use crate::limits::Limits;
use crate::pools::RoutingId;

fn session() -> SessionId {
    "s".into()
}

/// Attaches the one worker, which has these attempts, and of which the Store says that it holds those.
fn attach(edge: &mut EdgeState, epoch: u64, has: &[&AttemptToken], highest: u64, stored: &[&Arc<Job>]) -> Vec<EdgeEffect> {
    let item = |token: &&AttemptToken| InventoryItem { job_id: "job".into(), token: (*token).clone(), started: false };
    let inventory = has.iter().map(item).collect();
    let hello =
        Hello { session: session(), profile: profile("w", "p", 4), prefetch: 0, inventory, highest_assignment: highest };
    let reconciled = Reconciled::new(&hello, stored.iter().map(|job| (***job).clone()).collect());
    let arrival = Arrival { edge: "here".into(), epoch, hello, sent_away: false, reconciled, over: Vec::new() };
    match edge.on_hello(arrival, Moment::BEGAN, WALL) {
        Greeting::Welcome(effects) => effects,
        refused => panic!("{refused:?}"),
    }
}

fn attached() -> EdgeState {
    let mut edge = edge("topics: {'*': p}\npools: {p: {}}\n");
    attach(&mut edge, 1, &[], 0, &[]);
    edge
}

/// Claimed jobs as they are once their dispatch is committed.
fn reserve(edge: &mut EdgeState, epoch: u64, numbers: std::ops::RangeInclusive<u64>) -> Vec<Arc<Job>> {
    let limits = Limits::default();
    let placed = |number: u64| {
        let job = job(number, false);
        let env = env(&limits, &job.life.attempt.token);
        let placed = edge.reserve((&session(), epoch), &RoutingId::default(), &job, &env, Moment::BEGAN);
        Arc::new(placed.expect("there is room").0.job)
    };
    numbers.map(placed).collect()
}

/// The numbers of the assignments among these effects.
fn sent(effects: &[EdgeEffect]) -> Vec<u64> {
    let told = effects.iter().filter_map(|effect| match effect {
        EdgeEffect::Tell { message: ToWorker::Assign(assignments), .. } => Some(assignments),
        _ => None,
    });
    told.flatten().map(|assignment| assignment.number).collect()
}

fn token(job: &Arc<Job>) -> AttemptToken {
    job.life.attempt.token.clone()
}

#[test]
fn a_later_batch_that_is_committed_first_is_sent_after_the_earlier_one() {
    let mut edge = attached();
    let jobs = reserve(&mut edge, 1, 1..=3);
    assert!(sent(&edge.on_dispatched(vec![(jobs[2].clone(), None)])).is_empty());
    assert_eq!(sent(&edge.on_dispatched(vec![(jobs[0].clone(), None)])), [1]);
    assert_eq!(sent(&edge.on_dispatched(vec![(jobs[1].clone(), None)])), [2, 3]);
}

#[test]
fn a_dispatch_that_is_refused_or_cancelled_holds_up_no_later_one() {
    let mut edge = attached();
    let jobs = reserve(&mut edge, 1, 1..=4);
    assert!(sent(&edge.on_dispatched(vec![(jobs[3].clone(), None)])).is_empty());
    assert!(sent(&edge.on_undispatched(&session(), 1, &token(&jobs[0]))).is_empty());
    let (is_leaving, effects) = edge.on_superseded(&session(), &token(&jobs[1]), &jobs[1], Moment::BEGAN);
    assert!(!is_leaving && sent(&effects).is_empty(), "it was not sent, so its worker has nothing to let go of");
    assert_eq!(sent(&edge.on_settled(&session(), &token(&jobs[2]))), [4]);
    assert_eq!(edge.sessions[&session()].taken(), 1);
}

#[test]
fn what_never_arrived_is_sent_again_before_anything_new() {
    let mut edge = attached();
    let jobs = reserve(&mut edge, 1, 1..=2);
    edge.on_dispatched(jobs.iter().map(|job| (job.clone(), None)).collect());
    let effects = attach(&mut edge, 2, &[&token(&jobs[0])], 1, &[&jobs[0], &jobs[1]]);
    let resend = effects.iter().find_map(|effect| match effect {
        EdgeEffect::Resend { jobs, .. } => Some(jobs.clone()),
        _ => None,
    });
    assert_eq!(resend, Some(vec![jobs[1].clone()]));
    let new = reserve(&mut edge, 2, 3..=3);
    assert!(sent(&edge.on_dispatched(vec![(new[0].clone(), None)])).is_empty(), "the policy is asked about the earlier one");
    assert_eq!(sent(&edge.on_resent(&session(), 2, vec![(jobs[1].clone(), None)], &[])), [2, 3]);
}

#[test]
fn what_is_withheld_holds_up_nothing_and_is_lost_by_the_inventory_rule() {
    let mut edge = attached();
    let jobs = reserve(&mut edge, 1, 1..=1);
    edge.on_dispatched(vec![(jobs[0].clone(), None)]);
    attach(&mut edge, 2, &[], 0, &[&jobs[0]]);
    let new = reserve(&mut edge, 2, 2..=2);
    edge.on_dispatched(vec![(new[0].clone(), None)]);
    assert_eq!(sent(&edge.on_resent(&session(), 2, Vec::new(), &[token(&jobs[0])])), [2]);
    let missing = |held: &AttemptToken| edge.sessions[&session()].held[held].is_missing(2, |it| *it == token(&new[0]));
    assert!(missing(&token(&jobs[0])));
    assert!(!missing(&token(&new[0])));
}

#[test]
fn results_are_acknowledged_in_the_order_in_which_they_came() {
    let mut edge = attached();
    let batches: Vec<u64> = (0..3).filter_map(|_| edge.on_results(&session(), 1)).collect();
    let ack = |batch: u64| vec![(AttemptToken::from(format!("t{batch}")), Acknowledged::Stored)];
    let told = |effects: Vec<EdgeEffect>| effects.len();
    assert_eq!(told(edge.on_decided(&session(), 1, batches[2], ack(batches[2]))), 0);
    assert_eq!(told(edge.on_decided(&session(), 1, batches[0], ack(batches[0]))), 1);
    assert_eq!(told(edge.on_decided(&session(), 1, batches[1], Vec::new())), 1, "a batch that is given up holds up none");
}

#[test]
fn an_edge_whose_lease_may_be_gone_says_so_until_it_is_renewed() {
    let mut edge = attached();
    let later = |seconds| Moment::BEGAN + Duration::from_secs(seconds);
    assert!(!edge.may_be_closed(later(20)));
    assert!(edge.may_be_closed(later(21)));
    edge.on_renewed(later(21));
    assert!(!edge.may_be_closed(later(41)));
}

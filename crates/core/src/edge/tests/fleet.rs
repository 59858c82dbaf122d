//! Waiting jobs that are left to workers of other processes.

use std::sync::Arc;
use std::time::Duration;

use super::{RULES, edge as edge_of, profile};
use crate::edge::fleet::LEFT_AGAIN;
use crate::edge::{EdgeState, Moment, RemoteSession, Sighting, Want};
use crate::ids::{PoolName, SessionId};
use crate::lane::{Priority, Shape};
use crate::worker::Load;

const HANDOVER_WAIT: Duration = RULES.handover_wait;

/// An edge and its time.
struct Clocked {
    state: EdgeState,
    now: Moment,
}

impl Clocked {
    fn advance(&mut self, span: Duration) {
        self.now = self.now + span;
    }
}

/// An edge without workers of its own, and workers of a direct pool at other edges.
fn edge(others: &[(&str, &str)]) -> Clocked {
    let state = edge_of("topics: {t: d}\npools: {d: {dispatch: direct}}\n");
    let mut edge = Clocked { state, now: Moment::BEGAN };
    let row = |(session, at): &(&str, &str)| RemoteSession {
        session: (*session).into(),
        epoch: 1,
        edge: (*at).into(),
        profile: profile(session, "d", 4),
    };
    edge.state.meet(others.iter().map(row), edge.now);
    for (session, _) in others {
        say(&mut edge, session);
    }
    edge
}

/// The process of a worker says that it claimed something, and that this has ended.
fn say(edge: &mut Clocked, session: &str) {
    say_claimed(edge, session, 1);
}

/// The process of a worker says that it is idle, and that it claimed so much more for it.
fn say_claimed(edge: &mut Clocked, session: &str, more: u64) {
    let last = edge.state.seen.get(&SessionId::from(session)).map(|seen| seen.sighting.clone());
    let said = last.as_ref().map_or(1, |last| last.said + 1);
    let claimed = last.and_then(|last| last.claimed).map_or(Some(0), |claimed| Some(claimed + more));
    let sighting = Sighting {
        session: session.into(),
        epoch: 1,
        busy: 0,
        active_jobs: 0,
        load: Load::default(),
        attached: true,
        draining: false,
        heard_ms_ago: 0,
        slots: 4,
        said,
        claimed,
        leaving: Vec::new(),
    };
    edge.state.saw(std::iter::once(&sighting), Duration::ZERO, edge.now);
}

/// One round of claims while so many jobs wait: how many of them found no place, here or elsewhere.
fn round(edge: &mut Clocked, jobs: usize) -> usize {
    edge.state.begin_round();
    let want = Want { shape: Arc::new(Shape::of("t")), urgency: Priority::Default, jobs };
    let wants = if jobs == 0 { Vec::new() } else { vec![want] };
    let short = edge.state.plan(&PoolName::from("d"), &wants, edge.now).short;
    edge.state.end_round(edge.now);
    short.first().copied().unwrap_or(0)
}

#[test]
fn a_silent_process_is_left_nothing_for_any_of_its_workers_until_it_is_heard() {
    let mut edge = edge(&[("a1", "a"), ("a2", "a"), ("b1", "b")]);
    assert_eq!(round(&mut edge, 12), 0, "all of it is left to others");
    edge.advance(HANDOVER_WAIT);
    say(&mut edge, "b1");
    assert_eq!(round(&mut edge, 12), 8, "a said nothing, b did");
    say(&mut edge, "a2");
    assert_eq!(round(&mut edge, 12), 4, "a is there, and still says nothing of a1");
    say(&mut edge, "a1");
    assert_eq!(round(&mut edge, 12), 0);
}

#[test]
fn a_process_that_speaks_and_claims_nothing_is_left_nothing_until_it_claims() {
    let mut edge = edge(&[("a1", "a")]);
    assert_eq!(round(&mut edge, 4), 0, "all of it is left to it");
    edge.advance(HANDOVER_WAIT);
    for _ in 0..20 {
        say_claimed(&mut edge, "a1", 0);
        assert_eq!(round(&mut edge, 4), 4, "its beat is no claim");
        edge.advance(Duration::from_secs(1));
    }
    say_claimed(&mut edge, "a1", 1);
    assert_eq!(round(&mut edge, 4), 0, "it claimed something");
    edge.advance(HANDOVER_WAIT);
    say_claimed(&mut edge, "a1", 0);
    assert_eq!(round(&mut edge, 4), 4);
    edge.advance(LEFT_AGAIN);
    say_claimed(&mut edge, "a1", 0);
    assert_eq!(round(&mut edge, 4), 0, "tried again, in case that there was nothing that it could claim");
}

#[test]
fn who_was_left_what_no_longer_waits_is_not_doubted_for_its_silence() {
    let mut edge = edge(&[("a1", "a")]);
    assert_eq!(round(&mut edge, 1), 0);
    // It was cancelled.
    assert_eq!(round(&mut edge, 0), 0);
    edge.advance(HANDOVER_WAIT * 2);
    assert_eq!(round(&mut edge, 1), 0, "the next one is left to it all the same");
}

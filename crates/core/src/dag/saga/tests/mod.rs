//! What a saga of plain jobs does, by example and by chance.

mod chance;
mod world;

use std::time::Duration;

use super::{IDLE, SagaEntry, UNREADABLE_TOPIC};
use crate::dag::plan::{OrderRefusal, RunCommand};
use crate::dag::{NodeState, RunState, UndoState};
use crate::ids::ActorId;
use crate::job::{JobState, Reason};
use crate::lane::Priority;
use crate::request::Json;
use world::{UNDO, World, plain_job};

fn rollback() -> RunCommand {
    RunCommand::Cancel { actor: ActorId::from("bob"), note: None, compensate: true }
}

#[test]
fn a_fatal_failure_undoes_what_was_done_the_last_first() {
    let mut world = World::default();
    for id in ["a", "b", "c"] {
        world.submit(id, Some(UNDO));
        world.end(id, JobState::Succeeded, None);
    }
    assert_eq!(world.state(), RunState::Running);
    world.submit("bad", Some(UNDO));
    world.end("bad", JobState::Failed, Some(Reason::Fatal));
    assert_eq!(world.state(), RunState::Compensating);
    for id in ["c", "b", "a"] {
        assert_eq!(world.open_undos(), [id], "one at a time, in reverse");
        world.end_undo(id, JobState::Succeeded);
    }
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["c", "b", "a"]));
}

#[test]
fn a_timeout_rolls_back_and_a_failure_that_retries_spent_does_not() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    for (id, state, reason) in [
        ("tired", JobState::Failed, Reason::Failed),
        ("denied", JobState::Denied, Reason::Denied),
        ("stopped", JobState::Cancelled, Reason::Cancelled),
    ] {
        world.submit(id, None);
        world.end(id, state, Some(reason));
        assert_eq!(world.state(), RunState::Running, "{id}");
    }
    world.submit("late", None);
    world.end("late", JobState::Timeout, Some(Reason::ExecutionTimeout));
    assert_eq!(world.open_undos(), ["a"]);
}

#[test]
fn a_sibling_is_stopped_and_undone_if_it_completes_all_the_same() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.submit("b", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    world.submit("bad", None);
    world.end("bad", JobState::Failed, Some(Reason::Fatal));
    assert_eq!(world.stopped, ["b"]);
    assert!(world.open_undos().is_empty(), "nothing is undone before all is still");
    world.end("b", JobState::Succeeded, None);
    assert_eq!(world.open_undos(), ["b"], "it was done last");
    world.end_undo("b", JobState::Succeeded);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.state(), RunState::Compensated);
    world.submit("straggler", Some(UNDO));
    assert_eq!((world.state(), world.stopped.last().unwrap().as_str()), (RunState::Compensating, "straggler"));
    world.end("straggler", JobState::Succeeded, None);
    world.end_undo("straggler", JobState::Succeeded);
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["b", "a", "straggler"]));
}

#[test]
fn the_order_of_the_ends_counts_however_late_they_are_heard() {
    let mut world = World::default();
    world.submit("a", None);
    for id in ["x", "y"] {
        world.jobs.insert(id.to_owned(), plain_job(id, Some(UNDO), world.now));
    }
    for id in ["y", "x"] {
        world.settle(id, JobState::Succeeded, None);
    }
    // Two births and two ends, in the order in which they were committed; each shows its job as it is now.
    world.hear(&["x", "y", "y", "x"].map(|id| world.news_of(id)));
    world.obey(rollback()).unwrap();
    world.end("a", JobState::Cancelled, Some(Reason::Cancelled));
    assert_eq!(world.open_undos(), ["x"], "it was done last");
    world.end_undo("x", JobState::Succeeded);
    assert_eq!(world.open_undos(), ["y"]);
}

#[test]
fn what_no_worker_had_in_its_hands_is_not_undone_whatever_it_says() {
    let mut world = World::default();
    for (id, state, reason) in
        [("denied", JobState::Denied, Reason::Denied), ("waited", JobState::Cancelled, Reason::Cancelled)]
    {
        world.submit(id, Some(r#"{"topic":"job.undo","undo_on_failure":true}"#));
        world.end(id, state, Some(reason));
    }
    world.obey(rollback()).unwrap();
    assert_eq!((world.state(), world.undone().len()), (RunState::Compensated, 0));
}

#[test]
fn what_was_cancelled_and_done_all_the_same_is_undone_once() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.submit("b", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    world.submit("bad", None);
    world.end("bad", JobState::Failed, Some(Reason::Fatal));
    world.end("b", JobState::Cancelled, Some(Reason::Cancelled));
    world.end_undo("a", JobState::Succeeded);
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["a"]));
    world.finish_late("b");
    for _ in 0..3 {
        world.tell("b");
    }
    assert_eq!((world.state(), world.open_undos()), (RunState::Compensating, vec!["b"]));
    assert_eq!((world.row("b").state, world.row("b").late), (NodeState::Canceled, true), "its end is what it was");
    world.end_undo("b", JobState::Succeeded);
    world.tell("b");
    world.crash();
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["a", "b"]));
}

#[test]
fn what_was_done_late_is_an_entry_of_an_open_workflow_too() {
    let mut world = World::default();
    for (id, state, reason) in [
        ("stopped", JobState::Cancelled, Reason::Cancelled),
        ("given-up", JobState::Failed, Reason::AgentLost),
        ("idle", JobState::Cancelled, Reason::Cancelled),
    ] {
        world.submit(id, Some(UNDO));
        world.end(id, state, Some(reason));
    }
    world.finish_late("given-up");
    world.tell("given-up");
    world.finish_late("stopped");
    world.tell("stopped");
    world.obey(rollback()).unwrap();
    for id in ["stopped", "given-up"] {
        assert_eq!(world.open_undos(), [id], "in reverse of how they were done");
        world.end_undo(id, JobState::Succeeded);
    }
    assert_eq!((world.state(), world.undone().len()), (RunState::Compensated, 2));
}

/// Half of it was undone before all of it was done.
#[test]
fn what_was_undone_before_it_was_done_late_is_undone_again() {
    let mut world = World::default();
    world.submit("a", Some(r#"{"topic":"job.undo","undo_on_failure":true}"#));
    world.end("a", JobState::Timeout, Some(Reason::DeadlineExceeded));
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.state(), RunState::Compensated);
    world.finish_late("a");
    world.tell("a");
    world.tell("a");
    world.end_undo("a", JobState::Succeeded);
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["a", "a"]));
}

#[test]
fn a_quarantined_result_is_an_entry_and_half_done_work_only_if_it_says_so() {
    let mut world = World::default();
    world.submit("quarantined", Some(UNDO));
    world.end("quarantined", JobState::OutputQuarantined, Some(Reason::OutputQuarantined));
    world.submit("half", Some(r#"{"topic":"job.undo","undo_on_failure":true}"#));
    world.end("half", JobState::Failed, Some(Reason::AgentLost));
    world.submit("not", Some(UNDO));
    world.end("not", JobState::Failed, Some(Reason::AgentLost));
    world.obey(rollback()).unwrap();
    world.end_undo("half", JobState::Succeeded);
    world.end_undo("quarantined", JobState::Succeeded);
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["half", "quarantined"]));
}

#[test]
fn what_undoes_is_marked_urgent_and_named_after_its_entry() {
    let mut world = World::default();
    world.submit("a", Some(r#"{"topic":"job.undo","payload":{"n":1},"env":{"MODE":"slow"},"budget":{"max_attempts":7}}"#));
    world.end("a", JobState::Succeeded, None);
    world.obey(rollback()).unwrap();
    let undo = world.undo_job("a");
    assert!(undo.job_id.as_str().starts_with("comp-"));
    assert_eq!(
        (undo.topic.as_str(), undo.payload.as_str(), undo.priority()),
        ("job.undo", r#"{"n":1}"#, Priority::Critical)
    );
    for label in ["saga_compensation", "is_compensation"] {
        assert_eq!(undo.labels[label], "true");
    }
    assert_eq!((undo.labels["saga_workflow_id"].as_str(), undo.env["saga_workflow_id"].as_str()), ("order-7", "order-7"));
    assert_eq!((undo.env["saga_compensation"].as_str(), undo.env["MODE"].as_str()), ("true", "slow"));
    assert_eq!((undo.env["TEAM"].as_str(), undo.max_attempts), ("blue", Some(7)), "the rest is the job's own");
    assert_eq!(undo.env["saga_idempotency_key"].len(), 64);
    assert_eq!(undo.capability.as_deref(), Some("book"));
    assert!(!undo.labels.contains_key("preferred_pool"), "another topic is served elsewhere");
}

#[test]
fn an_undo_that_fails_or_must_be_approved_is_stuck_until_somebody_resolves_it() {
    let mut world = World::default();
    for id in ["a", "b"] {
        world.submit(id, Some(UNDO));
        world.end(id, JobState::Succeeded, None);
    }
    world.obey(rollback()).unwrap();
    world.end_undo("b", JobState::ApprovalRequired);
    assert_eq!(world.state(), RunState::CompensationStuck);
    world.end_undo("b", JobState::Denied);
    assert_eq!((world.state(), world.undo_state("b")), (RunState::CompensationStuck, Some(UndoState::Stuck)));
    let first = world.undo_job("b").job_id.clone();
    world.obey(RunCommand::Retry { key: world.key("b") }).unwrap();
    assert_eq!(world.stopped, [first.as_str()], "nobody has to answer for it any more");
    assert_ne!(world.undo_job("b").job_id, first, "another try is another job");
    world.end_undo("b", JobState::Failed);
    assert!(world.open_undos().is_empty(), "what came before waits");
    world.obey(RunCommand::Resolve { key: world.key("b"), actor: ActorId::from("bob") }).unwrap();
    world.end_undo("a", JobState::Succeeded);
    assert_eq!(world.state(), RunState::Compensated);
}

#[test]
fn an_entry_that_cannot_be_read_leaves_a_dead_letter_and_people_go_on() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    world.spoil("a", Json::trusted(r#"{"topic":"job.undo","from":"the future"}"#));
    world.obey(rollback()).unwrap();
    let (request, failure) = world.dead.pop().expect("a dead letter");
    assert_eq!((failure.reason, request.topic.as_str()), (Reason::SagaUnmarshalFailed, UNREADABLE_TOPIC));
    assert!(request.payload.as_str().contains("the future"), "people can see what was to be done");
    assert_eq!(world.state(), RunState::CompensationStuck);
    world.obey(RunCommand::Resolve { key: world.key("a"), actor: ActorId::from("bob") }).unwrap();
    assert_eq!(world.state(), RunState::Compensated);
}

#[test]
fn a_quiet_workflow_is_over_and_goes_on_with_its_next_job() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    world.wait(IDLE - Duration::from_secs(1));
    assert_eq!(world.state(), RunState::Running);
    world.wait(Duration::from_secs(1));
    assert_eq!(world.state(), RunState::Succeeded);
    world.submit("b", None);
    assert_eq!(world.state(), RunState::Running);
    world.end("b", JobState::Failed, Some(Reason::Fatal));
    assert_eq!(world.open_undos(), ["a"], "what was done before is remembered");
}

#[test]
fn each_life_of_a_job_is_undone() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.end("a", JobState::OutputQuarantined, Some(Reason::OutputQuarantined));
    world.replay("a");
    world.end("a", JobState::Succeeded, None);
    world.obey(rollback()).unwrap();
    world.end_undo("a", JobState::Succeeded);
    world.end_undo("a", JobState::Succeeded);
    assert_eq!((world.state(), world.undone()), (RunState::Compensated, vec!["a", "a"]));
}

#[test]
fn a_saga_has_no_plan_to_pause_or_to_run_again() {
    let mut world = World::default();
    world.submit("a", None);
    assert_eq!(world.obey(RunCommand::Pause).unwrap_err(), OrderRefusal::NoPlan);
    assert_eq!(world.obey(RunCommand::Resume).unwrap_err(), OrderRefusal::NoPlan);
    world.obey(RunCommand::Cancel { actor: ActorId::from("bob"), note: None, compensate: false }).unwrap();
    assert_eq!(world.stopped, ["a"]);
    world.end("a", JobState::Cancelled, None);
    assert_eq!((world.state(), world.row("a").state), (RunState::Canceled, NodeState::Canceled));
    assert!(matches!(world.obey(rollback()), Err(OrderRefusal::Over(_))));
}

#[test]
fn an_entry_reads_what_it_wrote() {
    let mut world = World::default();
    world.submit("a", Some(UNDO));
    world.end("a", JobState::Succeeded, None);
    let text = world.row("a").entry.clone().unwrap();
    let entry: SagaEntry = serde_json::from_str(text.as_str()).unwrap();
    assert_eq!(serde_json::to_string(&entry).unwrap(), text.as_str());
}

#[test]
fn nothing_is_undone_while_a_cancelled_job_may_still_be_at_work() {
    let world = || {
        let mut world = World::default();
        world.submit("a", Some(UNDO));
        world.end("a", JobState::Succeeded, None);
        world.submit("b", Some(UNDO));
        world.submit("bad", None);
        world.end("bad", JobState::Failed, Some(Reason::Fatal));
        world.take_away("b");
        world.end("b", JobState::Cancelled, Some(Reason::Cancelled));
        assert_eq!((world.state(), world.open_undos().len()), (RunState::Compensating, 0), "b may be done yet");
        world.crash();
        world
    };
    let mut done = world();
    done.finish_late("b");
    done.tell("b");
    assert_eq!(done.open_undos(), ["b"]);
    done.end_undo("b", JobState::Succeeded);
    assert_eq!(done.open_undos(), ["a"], "the last first");
    let mut stopped = world();
    stopped.let_go("b");
    stopped.tell("b");
    assert_eq!(stopped.open_undos(), ["a"]);
}

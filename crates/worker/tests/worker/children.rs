//! Handlers that submit jobs of their own.

use std::time::Duration;

use lockgate_proto::v1::Assignment;
use lockgate_proto::v1::result::Outcome;
use lockgate_worker::{Child, Context, JobError, Wait, Worker};

use crate::edge::{Edge, Manners, job};
use crate::running::Running;

/// Submits a child of the topic that its payload names, then waits for it.
async fn fan(ctx: Context, topic: String) -> Result<u32, JobError> {
    if ctx.gathered().is_some() {
        let children = ctx.children().await?;
        let states: Vec<_> = children.iter().map(|child| (child.key.as_str(), child.state)).collect();
        assert_eq!(states, [("a", "SUCCEEDED"), ("b", "FAILED")]);
        return children[0].result();
    }
    let ids = ctx.submit_children([Child::new("a", topic).payload(&1).max_attempts(2), Child::new("b", "t")]).await?;
    assert_eq!(ids, [format!("{}~a", ctx.job_id()), format!("{}~b", ctx.job_id())]);
    Err(JobError::await_children(Wait::up_to(Duration::from_secs(9)).or_review()))
}

async fn outcome(assignment: Assignment) -> Outcome {
    let mut edge = Edge::start(Manners::default()).await;
    let worker =
        Worker::connect(edge.url()).handle("fan", |ctx, payload| async move { fan(ctx, payload.json::<String>()?).await });
    let _running = Running::start(worker);
    let mut stream = edge.accept().await;
    stream.assign([assignment]);
    stream.result().await
}

#[tokio::test]
async fn children_are_submitted_again_until_there_is_room_and_then_waited_for() {
    let Outcome::AwaitChildren(wait) = outcome(job("p", "fan", r#""crowded""#)).await else { panic!("a wait") };
    assert_eq!((wait.timeout_ms, wait.on_timeout.as_str()), (Some(9_000), "review"));
}

#[tokio::test]
async fn a_child_that_is_refused_for_good_fails_its_parent_and_is_named() {
    let Outcome::FailedFatal(failed) = outcome(job("p", "fan", r#""refused""#)).await else { panic!("a failure") };
    assert_eq!(failed.error, "child a: no (invalid_argument)");
}

#[tokio::test]
async fn a_parent_that_is_called_again_reads_all_pages_of_its_children() {
    let again = Assignment { gathered: 1, ..job("p", "fan", r#""t""#) };
    let Outcome::Succeeded(done) = outcome(again).await else { panic!("a success") };
    assert_eq!(&done.result_json[..], b"7");
}

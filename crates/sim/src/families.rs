//! Final checks of families: no parent waits without a live child, and a parent that ended badly has no live children.

use std::time::Duration;

use lockgate_core::ids::JobId;
use lockgate_core::job::{EventKind, Job, JobEvent, JobState};
use lockgate_core::time::Timestamp;
use lockgate_ports::{JobStore, StoreError};
use tokio::time::Instant;

use crate::check::{Violation, deadline_slack, ensure};
use crate::world::SimWorld;

/// Without faults, the children of a parent that ended badly are stopped within this time.
const DISOWNED_WITHIN: Duration = Duration::from_secs(60);

fn unread(error: &StoreError) -> Violation {
    Violation::new("families are read", error.to_string())
}

/// F-3: waits until every parent that ended badly has stopped its children, also if its process died meanwhile.
pub(crate) async fn settle(world: &SimWorld) -> Result<(), Violation> {
    let deadline = Instant::now() + DISOWNED_WITHIN;
    loop {
        let Some(parent) = unsettled(world).await? else { return Ok(()) };
        if Instant::now() > deadline {
            let detail = format!("{} {:?}", parent.request.job_id, parent.life);
            return Err(Violation::new("F-3 who ends badly sees to its children", detail));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn unsettled(world: &SimWorld) -> Result<Option<Job>, Violation> {
    let parents: Vec<JobId> = world.witness.families().into_keys().map(|(parent, _)| parent).collect();
    let rows = world.disk.load(&parents).await.map_err(|error| unread(&error))?;
    let owes = |job: &Job| {
        let badly = matches!(job.state(), JobState::Failed | JobState::Timeout | JobState::Denied | JobState::Cancelled);
        badly && job.life.family.as_ref().is_some_and(|family| !family.settled)
    };
    Ok(rows.into_iter().flatten().find(owes))
}

/// F-2: among jobs that never ended, a parent that waits although none of its children is live.
pub(crate) fn waits_for_nobody(live: &[Job]) -> Option<&Job> {
    let under_way = |parent: &Job| {
        let mut children = live.iter().filter_map(|job| job.request.child_of.as_ref());
        children.any(|of| of.parent == parent.request.job_id && of.life == parent.life.no)
    };
    live.iter().find(|job| job.barrier().is_some() && !under_way(job))
}

/// F-3, checked against the histories. The witness checks the commits.
pub(crate) async fn check(world: &SimWorld) -> Result<(), Violation> {
    for ((parent, life), children) in world.witness.families() {
        let Some(ended) = bad_end(&events(world, &parent).await?, life) else { continue };
        for child in children.values() {
            let events = events(world, child).await?;
            // A child that a person revived is not stopped with its parent.
            let mut own = events.iter().take_while(|event| event.kind != EventKind::Replayed);
            let later = own.find(|event| event.kind == EventKind::Dispatched && event.at > ended + deadline_slack(world));
            ensure(later.is_none(), "F-3 children of a life that ended badly do not go on", || {
                format!("{child} of {parent}, which ended at {ended:?}: {later:?}")
            })?;
        }
    }
    Ok(())
}

async fn events(world: &SimWorld, id: &JobId) -> Result<Vec<JobEvent>, Violation> {
    let detail = world.disk.detail(id).await.map_err(|error| unread(&error))?;
    Ok(detail.map(|detail| detail.events).unwrap_or_default())
}

/// When this life ended, if it ended badly.
fn bad_end(events: &[JobEvent], life: u32) -> Option<Timestamp> {
    let mut lives = events.split(|event| event.kind == EventKind::Replayed);
    let own = lives.nth(life.saturating_sub(1) as usize)?;
    let badly = |kind| matches!(kind, EventKind::Failed | EventKind::TimedOut | EventKind::Denied | EventKind::Cancelled);
    own.iter().find(|event| badly(event.kind)).map(|event| event.at)
}

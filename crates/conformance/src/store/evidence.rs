//! Evidence must still hold when the statement runs.

use std::time::Duration;

use lockgate_core::job::{Evidence, Input, Job, JobState, Reason};
use lockgate_core::request::NewJob;

use super::stage::{Proof, StoreHarness, allow, dispatch_to, new_job};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{ChangeError, JobChange};

fn lost(job: &Job, session: &str, epoch: u64) -> Input {
    let evidence = Evidence::Closed { session: session.into(), epoch };
    Input::Lost { token: job.life.attempt.token.clone(), reason: Reason::AgentLost, evidence, turn: Duration::ZERO }
}

pub async fn a_dispatch_needs_the_session_attached_with_its_epoch(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let first = h.attach("s").await?;
    let second = h.attach("s").await?;
    for (session, epoch) in [("s", first), ("s", second + 1), ("stranger", 1)] {
        let change = job.next(dispatch_to(session, epoch), &h.env(allow()))?;
        assert_eq!(h.commit(change).await?, Err(ChangeError::Conflict), "{session} {epoch}");
    }
    assert!(h.store.close_session(&"s".into(), second).await?);
    let change = job.next(dispatch_to("s", second), &h.env(allow()))?;
    assert_eq!(h.commit(change).await?, Err(ChangeError::Conflict));
    assert_eq!(h.load("one").await?, job);
    let third = h.attach("s").await?;
    assert_eq!(h.dispatch(&job, "s", third).await?.state(), JobState::Dispatched);
    Ok(())
}

pub async fn a_loss_needs_the_session_closed_with_its_epoch(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    let refused = |epoch| held.next(lost(&held, "s", epoch), &h.env(allow()));
    assert_eq!(h.commit(refused(epoch)?).await?, Err(ChangeError::Conflict), "still attached");
    assert!(h.store.close_session(&"s".into(), epoch).await?);
    assert_eq!(h.commit(refused(epoch + 1)?).await?, Err(ChangeError::Conflict), "another epoch");
    let again = h.attach("s").await?;
    assert_eq!(h.commit(refused(epoch)?).await?, Err(ChangeError::Conflict), "attached again");
    assert!(h.store.close_session(&"s".into(), again).await?);
    let next = h.step(&held, lost(&held, "s", again)).await?;
    assert_eq!((next.state(), next.life.attempt.no), (JobState::Scheduled, 2));
    Ok(())
}

pub async fn a_time_is_reached_by_the_stores_own_clock(h: &StoreHarness) -> Proof {
    let job = h.submit(NewJob { deadline_ms: Some(1_000), ..new_job("one") }).await?;
    // The clock of the deciding process is ahead; the Store's is not.
    let mut ahead = h.env(allow());
    ahead.now = h.clock.now() + Duration::from_secs(5);
    let expiry = job.next(Input::Woken, &ahead)?;
    assert_eq!(h.commit(expiry.clone()).await?, Err(ChangeError::Conflict));
    h.advance_ms(999);
    assert_eq!(h.commit(expiry.clone()).await?, Err(ChangeError::Conflict));
    h.advance_ms(1);
    h.commit(expiry).await??;
    assert_eq!(h.load("one").await?.state(), JobState::Timeout);
    Ok(())
}

pub async fn evidence_holds_within_one_call_too(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let stale = h.attach("gone").await?;
    assert!(h.store.close_session(&"gone".into(), stale).await?);
    let mut changes = Vec::new();
    for (id, session, epoch) in [("a", "s", epoch), ("b", "gone", stale), ("c", "s", epoch + 1), ("d", "s", epoch)] {
        let job = h.submit(new_job(id)).await?;
        changes.push(JobChange::from(job.next(dispatch_to(session, epoch), &h.env(allow()))?));
    }
    let accepted: Vec<bool> = h.store.commit(changes).await?.iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, false, false, true]);
    Ok(())
}

//! Configuration in force.

use std::sync::Arc;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::job::{Dispatch, Input, Job, JobState, Reason};
use lockgate_core::pools::RoutingId;
use lockgate_core::request::Json;
use lockgate_core::verdict::{BUILTIN_ALLOW, Decision};

use super::stage::{Found, Proof, StoreHarness, allow, dispatch_to, new_job, under};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{Activation, Active, ChangeError, JobChange, Outdated, SnapshotKind, StoreError};

const POLICY: SnapshotKind = SnapshotKind::Policy;

/// Puts the policy `id` in force, if `expected` is.
pub(super) fn activation(h: &StoreHarness, id: &str, expected: u64) -> Activation {
    let audit = AuditEntry {
        at: h.clock.now(),
        tenant: "acme".into(),
        actor: "ann".into(),
        action: AuditAction::PolicyActivated,
        subject: id.into(),
        detail: Json::trusted(format!("{{\"after\":{expected}}}")),
    };
    Activation { kind: POLICY, id: id.into(), text: format!("text of {id}").into(), actor: "ann".into(), expected, audit }
}

async fn activate(h: &StoreHarness, id: &str, expected: u64) -> Result<Result<u64, Outdated>, StoreError> {
    h.store.activate(activation(h, id, expected)).await
}

async fn submitted_under(h: &StoreHarness, id: &str, policy: &str) -> Found<Job> {
    h.submit_as("acme", new_job(id), under(policy, Decision::Allow)).await
}

fn sent(h: &StoreHarness, job: &Job, epoch: u64) -> Found<JobChange> {
    Ok(job.next(dispatch_to("s", epoch), &h.env(allow()))?.into())
}

/// Subjects of all audit rows.
async fn audited(h: &StoreHarness) -> Found<Vec<String>> {
    Ok(h.store.audit(0, 100).await?.iter().map(|row| row.entry.subject.to_string()).collect())
}

pub async fn the_builtin_policy_is_in_force_until_one_is_activated(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    assert_eq!(h.store.active(POLICY).await?, None);
    assert_eq!(h.store.snapshots(POLICY, 10).await?, []);
    assert_eq!(h.store.snapshot(POLICY, BUILTIN_ALLOW).await?, None);
    let (builtin, other) = (submitted_under(h, "a", BUILTIN_ALLOW).await?, submitted_under(h, "b", "p1").await?);
    let results = h.store.commit(vec![sent(h, &other, epoch)?, sent(h, &builtin, epoch)?]).await?;
    assert_eq!(results, [Err(ChangeError::Conflict), Ok(builtin.seq)]);
    assert_eq!(activate(h, "p1", 0).await?, Ok(1));
    let late = submitted_under(h, "c", BUILTIN_ALLOW).await?;
    let results = h.store.commit(vec![sent(h, &late, epoch)?, sent(h, &other, epoch)?]).await?;
    assert_eq!(results, [Err(ChangeError::Conflict), Ok(other.seq)], "and not any more from then on");
    Ok(())
}

pub async fn an_activation_is_in_force_at_once(h: &StoreHarness) -> Proof {
    h.advance_ms(5);
    for (expected, id) in [(0, "p1"), (1, "p2")] {
        let version = expected + 1;
        assert_eq!(activate(h, id, expected).await?, Ok(version));
        let active = h.store.active(POLICY).await?;
        let text = Arc::from(format!("text of {id}"));
        assert_eq!(active, Some(Active { version, id: id.into(), text, actor: "ann".into(), at: h.clock.now() }));
        h.advance_ms(5);
    }
    assert_eq!(h.store.snapshot(POLICY, "p1").await?.as_deref(), Some("text of p1"), "former texts stay");
    assert_eq!(h.store.snapshot(POLICY, "p3").await?, None);
    Ok(())
}

pub async fn a_dispatch_under_another_policy_conflicts_and_its_neighbours_do_not(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    activate(h, "p1", 0).await??;
    let old = submitted_under(h, "old", "p1").await?;
    let stale = sent(h, &old, epoch)?;
    activate(h, "p2", 1).await??;
    let (a, b) = (submitted_under(h, "a", "p2").await?, submitted_under(h, "b", "p2").await?);
    let unattached = submitted_under(h, "c", "p2").await?;
    let changes = vec![sent(h, &a, epoch)?, stale.clone(), sent(h, &unattached, epoch + 1)?, sent(h, &b, epoch)?];
    let results = h.store.commit(changes).await?;
    assert_eq!(results, [Ok(a.seq), Err(ChangeError::Conflict), Err(ChangeError::Conflict), Ok(b.seq)]);
    assert_eq!(h.load("old").await?, old);
    activate(h, "p1", 2).await??;
    h.commit(stale).await??;
    assert_eq!(h.load("old").await?.state(), JobState::Dispatched, "the policy it was judged by is back in force");
    Ok(())
}

pub async fn a_dispatch_under_other_pools_or_states_of_pools_conflicts(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let mut in_force = RoutingId::default();
    for (kind, n) in [(SnapshotKind::Pools, 1), (SnapshotKind::PoolStates, 2)] {
        let job = h.submit(new_job(&format!("job-{n}"))).await?;
        let under = |routing: &RoutingId| -> Found<JobChange> {
            let dispatch =
                Dispatch { session: "s".into(), epoch, worker: "worker".into(), assignment: n, routing: routing.clone() };
            Ok(job.next(Input::Dispatch(dispatch), &h.env(allow()))?.into())
        };
        let given_up = |routing: &RoutingId| -> Found<JobChange> {
            let (reason, message) = (Reason::NoWorkers, "nobody takes it".into());
            Ok(job.next(Input::GivenUp { reason, message, routing: routing.clone() }, &h.env(allow()))?.into())
        };
        let before = in_force.clone();
        h.store.activate(Activation { kind, ..activation(h, "new", 0) }).await??;
        match kind {
            SnapshotKind::Pools => in_force.pools = "new".into(),
            _ => in_force.states = "new".into(),
        }
        let results = h.store.commit(vec![under(&before)?, given_up(&before)?]).await?;
        assert_eq!(results, [Err(ChangeError::Conflict), Err(ChangeError::Conflict)], "{kind:?}");
        assert_eq!(h.load(&format!("job-{n}")).await?, job);
        assert_eq!(h.commit(under(&in_force)?).await?, Ok(job.seq), "{kind:?}");
    }
    Ok(())
}

pub async fn an_activation_with_a_stale_version_changes_nothing(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    assert_eq!(activate(h, "p1", 1).await?, Err(Outdated { in_force: 0 }));
    assert_eq!((h.store.active(POLICY).await?, audited(h).await?), (None, Vec::new()));
    activate(h, "p1", 0).await??;
    let before = h.store.active(POLICY).await?;
    for expected in [0, 2] {
        assert_eq!(activate(h, "p2", expected).await?, Err(Outdated { in_force: 1 }));
    }
    assert_eq!(h.store.active(POLICY).await?, before);
    assert_eq!(h.store.snapshot(POLICY, "p2").await?, None);
    assert_eq!((h.store.snapshots(POLICY, 10).await?.len(), audited(h).await?.len()), (1, 1));
    let job = submitted_under(h, "one", "p1").await?;
    h.dispatch(&job, "s", epoch).await?;
    Ok(())
}

pub async fn an_activation_and_its_audit_row_are_one_commit(h: &StoreHarness) -> Proof {
    let change = activation(h, "p1", 0);
    h.store.activate(change.clone()).await??;
    let rows = h.store.audit(0, 10).await?;
    assert_eq!(rows.iter().map(|row| &row.entry).collect::<Vec<_>>(), [&change.audit]);
    Ok(())
}

pub async fn a_former_text_can_be_put_in_force_again(h: &StoreHarness) -> Proof {
    for (expected, id) in [(0, "p1"), (1, "p2"), (2, "p1")] {
        activate(h, id, expected).await??;
    }
    let active = h.store.active(POLICY).await?.ok_or("nothing in force")?;
    assert_eq!((active.version, &*active.id, &*active.text), (3, "p1", "text of p1"));
    assert_eq!(audited(h).await?, ["p1", "p2", "p1"]);
    Ok(())
}

pub async fn an_id_names_one_text_for_ever(h: &StoreHarness) -> Proof {
    activate(h, "p1", 0).await??;
    let forged = Activation { text: "another".into(), ..activation(h, "p1", 1) };
    h.store.activate(forged).await??;
    assert_eq!(h.store.snapshot(POLICY, "p1").await?.as_deref(), Some("text of p1"));
    assert_eq!(h.store.active(POLICY).await?.map(|active| active.text).as_deref(), Some("text of p1"));
    Ok(())
}

pub async fn texts_are_listed_by_their_latest_activation(h: &StoreHarness) -> Proof {
    for (expected, id) in (0..).zip(["p1", "p2", "p3", "p1"]) {
        h.advance_ms(1);
        let change = Activation { actor: format!("actor-{expected}").into(), ..activation(h, id, expected) };
        h.store.activate(change).await??;
    }
    let rows = h.store.snapshots(POLICY, 10).await?;
    let listed: Vec<_> = rows.iter().map(|row| (&*row.id, row.version, row.actor.as_str())).collect();
    assert_eq!(listed, [("p1", 4, "actor-3"), ("p3", 3, "actor-2"), ("p2", 2, "actor-1")]);
    assert_eq!(rows[0].at, h.clock.now());
    assert_eq!(h.store.snapshots(POLICY, 2).await?, rows[..2]);
    Ok(())
}

pub async fn concurrent_activations_of_one_version_have_one_winner(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16 {
        let (store, change) = (Arc::clone(&h.store), activation(h, &format!("p{n}"), 0));
        racers.spawn(async move { (n, store.activate(change).await) });
    }
    let mut winners = Vec::new();
    while let Some(result) = racers.join_next().await {
        match result? {
            (n, Ok(Ok(version))) => winners.push((format!("p{n}"), version)),
            (_, other) => assert_eq!(other?, Err(Outdated { in_force: 1 })),
        }
    }
    let active = h.store.active(POLICY).await?.ok_or("nothing in force")?;
    assert_eq!(winners, [(active.id.to_string(), 1)]);
    assert_eq!(audited(h).await?, [&*active.id]);
    Ok(())
}

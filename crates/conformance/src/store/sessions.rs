//! Edges, sessions, leases.

use std::time::Duration;

use lockgate_core::ids::{EdgeId, SessionId};
use lockgate_core::worker::WorkerProfile;

use super::stage::{Proof, StoreHarness, new_job, profile, report, success};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{AttachedSession, EdgeRow, LeaseRow, SessionRow, StoreError, Unattached};

const TTL: Duration = Duration::from_secs(6);
const GRACE: Duration = Duration::from_secs(4);

fn edge() -> EdgeId {
    EdgeId::from("edge")
}

fn row(session: &str, epoch: u64, edge_closed: bool) -> SessionRow {
    SessionRow { session: session.into(), epoch, edge: edge(), edge_closed, profile: profile("worker"), sent_away: false }
}

/// Closes whatever is long over, by a look of a moment ago.
async fn close_edges(h: &StoreHarness, grace: Duration) -> Result<Vec<EdgeId>, StoreError> {
    h.store.close_edges(&h.store.open_edges().await?, grace).await
}

pub async fn an_edge_is_renewed_until_it_is_closed(h: &StoreHarness) -> Proof {
    assert!(h.store.renew_edge(&edge(), TTL).await?);
    h.advance_ms(9_999);
    assert!(h.store.renew_edge(&edge(), TTL).await?, "renewable after expiry");
    h.advance_ms(10_000);
    assert_eq!(close_edges(h, GRACE).await?, [edge()]);
    assert!(!h.store.renew_edge(&edge(), TTL).await?);
    assert_eq!(close_edges(h, GRACE).await?, [], "closed only once");
    assert!(h.store.renew_edge(&"another".into(), TTL).await?);
    Ok(())
}

pub async fn an_edge_is_closed_only_after_its_grace(h: &StoreHarness) -> Proof {
    h.store.renew_edge(&"b".into(), TTL).await?;
    h.store.renew_edge(&"a".into(), TTL).await?;
    h.advance_ms(1);
    h.store.renew_edge(&"fresh".into(), TTL).await?;
    h.advance_ms(9_998);
    assert_eq!(close_edges(h, GRACE).await?, []);
    h.advance_ms(1);
    assert_eq!(close_edges(h, GRACE).await?, ["a".into(), "b".into()]);
    assert_eq!(close_edges(h, Duration::ZERO).await?, ["fresh".into()]);
    Ok(())
}

pub async fn an_edge_is_closed_only_as_it_was_seen(h: &StoreHarness) -> Proof {
    h.store.renew_edge(&"a".into(), TTL).await?;
    h.store.renew_edge(&"b".into(), TTL).await?;
    let seen = h.store.open_edges().await?;
    let ends = h.clock.now() + TTL;
    let row = |edge: &str, expires_at| EdgeRow { edge: edge.into(), expires_at };
    assert_eq!(seen, [row("a", ends), row("b", ends)]);
    h.advance_ms(1_000);
    h.store.renew_edge(&"a".into(), TTL).await?;
    h.advance_ms(20_000);
    let stranger = row("stranger", ends);
    assert_eq!(h.store.close_edges(&[seen[0].clone(), stranger], GRACE).await?, [], "it was renewed since");
    assert_eq!(h.store.close_edges(&[], GRACE).await?, []);
    assert_eq!(h.store.close_edges(&seen, GRACE).await?, ["b".into()]);
    assert_eq!(h.store.open_edges().await?, [row("a", ends + Duration::from_secs(1))]);
    Ok(())
}

pub async fn nobody_attaches_to_an_edge_that_was_closed(h: &StoreHarness) -> Proof {
    h.store.renew_edge(&edge(), TTL).await?;
    h.attach("s").await?;
    h.advance_ms(20_000);
    assert_eq!(close_edges(h, GRACE).await?, [edge()]);
    for session in ["s", "new"] {
        let refused = h.store.attach(&session.into(), &edge(), &profile("worker")).await?;
        assert_eq!(refused, Err(Unattached::EdgeClosed));
    }
    assert_eq!(h.store.open_sessions().await?, [row("s", 1, true)], "nothing has changed");
    let moved = h.store.attach(&"s".into(), &"edge-2".into(), &profile("worker")).await?;
    assert_eq!(moved, Ok(AttachedSession { epoch: 2, sent_away: false }));
    Ok(())
}

pub async fn every_attach_bumps_the_epoch(h: &StoreHarness) -> Proof {
    h.store.renew_edge(&edge(), TTL).await?;
    assert_eq!(h.attach("s").await?, 1);
    assert_eq!(h.attach("s").await?, 2);
    assert_eq!(h.attach("other").await?, 1);
    assert!(h.store.close_session(&"s".into(), 2).await?);
    assert_eq!(h.attach("s").await?, 3);
    let moved = h.store.attach(&"s".into(), &"edge-2".into(), &profile("renamed")).await?;
    assert_eq!(moved, Ok(AttachedSession { epoch: 4, sent_away: false }));
    let rows = h.store.open_sessions().await?;
    let s = rows.iter().find(|row| row.session.as_str() == "s").ok_or("not open")?;
    assert_eq!((s.edge.as_str(), s.profile.worker.as_str(), s.epoch), ("edge-2", "renamed", 4));
    Ok(())
}

pub async fn a_session_is_closed_once_and_by_its_epoch(h: &StoreHarness) -> Proof {
    let session = SessionId::from("s");
    let first = h.attach("s").await?;
    let second = h.attach("s").await?;
    assert!(!h.store.close_session(&session, first).await?);
    assert_eq!(h.store.open_sessions().await?, [row("s", second, false)]);
    assert!(h.store.close_session(&session, second).await?);
    assert!(!h.store.close_session(&session, second).await?);
    assert!(!h.store.close_session(&"stranger".into(), 1).await?);
    assert_eq!(h.store.open_sessions().await?, []);
    Ok(())
}

pub async fn an_open_session_shows_that_its_edge_was_closed(h: &StoreHarness) -> Proof {
    h.store.renew_edge(&edge(), TTL).await?;
    h.attach("b").await?;
    h.attach("a").await?;
    assert_eq!(h.store.open_sessions().await?, [row("a", 1, false), row("b", 1, false)]);
    h.advance_ms(20_000);
    close_edges(h, GRACE).await?;
    h.store.renew_edge(&"edge-2".into(), TTL).await?;
    h.store.attach(&"b".into(), &"edge-2".into(), &profile("worker")).await??;
    let adopted = SessionRow { edge: "edge-2".into(), ..row("b", 2, false) };
    assert_eq!(h.store.open_sessions().await?, [row("a", 1, true), adopted]);
    Ok(())
}

pub async fn a_closed_session_is_listed_while_it_holds_jobs(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    h.attach("idle").await?;
    let job = h.submit(new_job("one")).await?;
    let held = h.dispatch(&job, "s", epoch).await?;
    assert_eq!(h.store.closed_holding().await?, []);
    for session in ["s", "idle"] {
        assert!(h.store.close_session(&session.into(), epoch).await?);
    }
    assert_eq!(h.store.closed_holding().await?, [row("s", epoch, false)]);
    h.step(&held, report(&held, success())).await?;
    assert_eq!(h.store.closed_holding().await?, []);
    Ok(())
}

pub async fn a_session_that_was_sent_away_is_so_wherever_it_attaches(h: &StoreHarness) -> Proof {
    for session in ["s", "other", "closed"] {
        h.attach(session).await?;
    }
    assert!(h.store.close_session(&"closed".into(), 1).await?);
    h.store.send_away(&["s".into(), "closed".into(), "stranger".into()]).await?;
    h.store.send_away(&[]).await?;
    assert_eq!(
        h.store.open_sessions().await?,
        [row("other", 1, false), SessionRow { sent_away: true, ..row("s", 1, false) }]
    );
    let attach = async |session: &str| h.store.attach(&session.into(), &"edge-2".into(), &profile("worker")).await;
    assert_eq!(attach("s").await?, Ok(AttachedSession { epoch: 2, sent_away: true }));
    assert_eq!(attach("other").await?, Ok(AttachedSession { epoch: 2, sent_away: false }));
    assert_eq!(attach("closed").await?, Ok(AttachedSession { epoch: 2, sent_away: false }), "it had left");
    Ok(())
}

pub async fn an_edge_that_never_renewed_is_closed_too(h: &StoreHarness) -> Proof {
    h.attach("s").await?;
    assert_eq!(h.store.open_sessions().await?, [row("s", 1, false)]);
    h.advance_ms(4_000);
    assert_eq!(close_edges(h, GRACE).await?, [edge()]);
    assert_eq!(h.store.open_sessions().await?, [row("s", 1, true)]);
    Ok(())
}

pub async fn a_lease_has_one_holder(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, Some(1));
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, None);
    assert_eq!(h.store.acquire("pruner", "bob", TTL).await?, Some(1));
    h.advance_ms(5_999);
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, None);
    h.advance_ms(1);
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, Some(2));
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, None);
    Ok(())
}

/// Written by a clock that was an hour ahead, and its holder is gone.
pub async fn a_lease_that_lies_far_ahead_of_the_clock_is_free(h: &StoreHarness) -> Proof {
    let right = h.clock.now();
    h.advance_ms(3_600_000);
    h.store.acquire("reaper", "ann", TTL).await?;
    h.store.acquire("pruner", "ann", TTL).await?;
    h.clock.set(right);
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, Some(2));
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, None, "taken by the right clock");
    assert_eq!(h.store.acquire("pruner", "ann", TTL).await?, Some(1), "its holder renews it");
    h.advance_ms(59_999);
    h.store.acquire("pruner", "ann", TTL).await?;
    h.clock.set(right);
    assert_eq!(h.store.acquire("pruner", "bob", TTL).await?, None, "clocks may be apart a little");
    Ok(())
}

pub async fn an_edge_whose_lease_lies_far_ahead_of_the_clock_can_be_closed(h: &StoreHarness) -> Proof {
    let right = h.clock.now();
    h.advance_ms(3_600_000);
    h.store.renew_edge(&"gone".into(), TTL).await?;
    h.store.renew_edge(&"alive".into(), TTL).await?;
    let seen = h.store.open_edges().await?;
    h.clock.set(right);
    h.store.renew_edge(&"alive".into(), TTL).await?;
    assert_eq!(h.store.close_edges(&seen, GRACE).await?, ["gone".into()], "the other was renewed since");
    assert_eq!(close_edges(h, GRACE).await?, []);
    Ok(())
}

pub async fn a_released_lease_is_free_at_once(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, Some(1));
    h.store.release("reaper", "bob").await?;
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, None, "only its holder can release it");
    h.store.release("reaper", "ann").await?;
    h.store.release("unknown", "ann").await?;
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, Some(2));
    h.store.release("reaper", "bob").await?;
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, Some(3));
    Ok(())
}

pub async fn a_lease_is_renewed_under_the_same_epoch(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, Some(1));
    h.advance_ms(4_000);
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, Some(1));
    h.advance_ms(4_000);
    assert_eq!(h.store.acquire("reaper", "bob", TTL).await?, None, "renewed, so it still holds");
    h.advance_ms(60_000);
    assert_eq!(h.store.acquire("reaper", "ann", TTL).await?, Some(1), "expired, but nobody took it");
    Ok(())
}

pub async fn leases_tell_who_holds_them_and_for_how_long(h: &StoreHarness) -> Proof {
    assert_eq!(h.store.leases().await?, []);
    h.store.acquire("reaper", "ann", TTL).await?;
    h.store.acquire("pruner", "bob", TTL).await?;
    h.advance_ms(1_000);
    h.store.acquire("reaper", "ann", TTL).await?;
    h.store.release("pruner", "bob").await?;
    h.advance_ms(6_500);
    let row = |name: &str, holder: Option<&str>, left_ms| LeaseRow {
        name: name.to_owned(),
        holder: holder.map(str::to_owned),
        epoch: 1,
        left_ms,
    };
    let leases = h.store.leases().await?;
    assert_eq!(leases, [row("pruner", None, -1_500), row("reaper", Some("ann"), -500)]);
    assert!(leases.iter().all(|lease| !lease.is_held()));
    h.store.acquire("reaper", "bob", TTL).await?;
    let taken = h.store.leases().await?.pop();
    assert_eq!(taken, Some(LeaseRow { epoch: 2, ..row("reaper", Some("bob"), 6_000) }));
    assert!(taken.is_some_and(|lease| lease.is_held()));
    Ok(())
}

pub async fn a_session_is_taken_up_again_only_by_its_owner(h: &StoreHarness) -> Proof {
    let in_epoch = |epoch| Ok(AttachedSession { epoch, sent_away: false });
    let refused = Err(Unattached::AnotherOwner);
    let of = |owner: Option<&str>| WorkerProfile { owner: owner.map(Into::into), ..profile("worker") };
    let attach = async |owner| h.store.attach(&"s".into(), &edge(), &of(owner)).await;
    assert_eq!(attach(Some("ann")).await?, in_epoch(1));
    assert_eq!(attach(Some("bob")).await?, refused);
    let rows = h.store.open_sessions().await?;
    let owners: Vec<_> = rows.iter().map(|row| (row.epoch, row.profile.owner.clone())).collect();
    assert_eq!(owners, [(1, Some("ann".into()))], "nothing has changed");
    assert_eq!(attach(Some("ann")).await?, in_epoch(2));
    assert!(h.store.close_session(&"s".into(), 2).await?);
    assert_eq!(attach(Some("bob")).await?, refused, "not even after it was closed");
    assert_eq!(attach(None).await?, in_epoch(3), "where nobody is asked, nobody is refused");
    assert_eq!(attach(Some("bob")).await?, in_epoch(4), "nobody's becomes somebody's");
    Ok(())
}

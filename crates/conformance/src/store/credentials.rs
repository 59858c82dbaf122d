//! C-1: credentials, and that they end.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::access::{Credential, CredentialId, CredentialKind, Grant, Reach, Role};
use lockgate_core::time::Timestamp;

use super::runs_stage::audited;
use super::stage::{Proof, StoreHarness};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{GoesOn, Store};

pub(super) fn credential(h: &StoreHarness, id: &str) -> Credential {
    Credential {
        id: id.into(),
        kind: CredentialKind::Key { digest: [7; 32] },
        actor: "ann".into(),
        actor_type: None,
        grant: Grant {
            reach: Reach::Tenant("acme".into()),
            roles: [Role::Submitter].into(),
            pools: [].into(),
            payloads: false,
        },
        created_at: h.clock.now(),
        created_by: "root".into(),
        ends_at: None,
    }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

async fn end(h: &StoreHarness, id: &str, millis: i64) -> Result<Option<Credential>, lockgate_ports::StoreError> {
    h.store.end_credential(&id.into(), at(millis), None, audited(h, id)).await
}

pub async fn a_new_credential_is_found_as_it_was_added(h: &StoreHarness) -> Proof {
    let key = credential(h, "lk_1");
    let certificate = Credential {
        kind: CredentialKind::Certificate,
        actor: "ünal".into(),
        actor_type: Some("agent".into()),
        grant: Grant {
            reach: Reach::Everyone,
            roles: Role::ALL.into(),
            pools: ["gpu".into(), "default".into()].into(),
            payloads: true,
        },
        ends_at: Some(at(9_000)),
        ..credential(h, "spiffe://example.org/ünal \"1\"")
    };
    for new in [&key, &certificate] {
        assert!(h.store.add_credential(new.clone(), audited(h, new.id.as_str())).await?);
        assert_eq!(h.store.credential(&new.id).await?.as_ref(), Some(new));
    }
    assert_eq!(h.store.credential(&"nobody".into()).await?, None);
    let audit: Vec<_> = h.store.audit(0, 10).await?.into_iter().map(|row| row.entry).collect();
    assert_eq!(audit, [audited(h, key.id.as_str()), audited(h, certificate.id.as_str())]);
    Ok(())
}

pub async fn an_id_of_a_credential_is_taken_once(h: &StoreHarness) -> Proof {
    let first = credential(h, "lk_1");
    assert!(h.store.add_credential(first.clone(), audited(h, "first")).await?);
    let twin = Credential { actor: "bob".into(), ends_at: Some(at(1)), ..first.clone() };
    assert!(!h.store.add_credential(twin.clone(), audited(h, "twin")).await?);
    assert_eq!(h.store.credential(&first.id).await?, Some(first.clone()));
    assert_eq!(h.store.audit(0, 10).await?.len(), 1);
    end(h, "lk_1", 0).await?;
    assert!(!h.store.add_credential(twin, audited(h, "twin")).await?, "an ended one has its id for ever");
    Ok(())
}

pub async fn one_of_many_concurrent_credentials_gets_the_id(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..12 {
        let new = Credential { actor: format!("actor-{n}").as_str().into(), ..credential(h, "lk_1") };
        let (store, audit) = (Arc::clone(&h.store), audited(h, &format!("actor-{n}")));
        racers.spawn(async move { store.add_credential(new, audit).await });
    }
    let mut winners = 0;
    while let Some(added) = racers.join_next().await {
        winners += u32::from(added??);
    }
    let found = h.store.credential(&"lk_1".into()).await?.ok_or("nobody won")?;
    let audit = h.store.audit(0, 100).await?;
    assert_eq!((winners, audit.len(), &*audit[0].entry.subject), (1, 1, found.actor.as_str()));
    Ok(())
}

pub async fn a_credential_never_lives_longer_again(h: &StoreHarness) -> Proof {
    let endless = credential(h, "lk_endless");
    let expiring = Credential { ends_at: Some(at(5_000)), ..credential(h, "lk_expiring") };
    for new in [&endless, &expiring] {
        assert!(h.store.add_credential(new.clone(), audited(h, "added")).await?);
    }
    for (id, asked, ends) in [
        ("lk_endless", 9_000, 9_000),
        ("lk_expiring", 9_000, 5_000),
        ("lk_endless", 3_000, 3_000),
        ("lk_endless", 4_000, 3_000),
        ("lk_expiring", 5_001, 5_000),
        ("lk_expiring", -1, -1),
        ("lk_expiring", 0, -1),
    ] {
        let ended = end(h, id, asked).await?.ok_or("it is gone")?;
        assert_eq!(ended.ends_at, Some(at(ends)), "{id} at {asked}");
        assert_eq!(h.store.credential(&id.into()).await?, Some(ended));
    }
    let found = h.store.credential(&endless.id).await?;
    assert_eq!(found, Some(Credential { ends_at: Some(at(3_000)), ..endless }), "nothing else of it changed");
    assert_eq!(h.store.audit(0, 100).await?.len(), 9, "each order is in the trail");
    Ok(())
}

pub async fn what_is_not_there_cannot_be_ended(h: &StoreHarness) -> Proof {
    assert_eq!(end(h, "nobody", 1).await?, None);
    assert_eq!((h.store.audit(0, 10).await?, h.store.credentials(None, 10).await?), (Vec::new(), Vec::new()));
    Ok(())
}

pub async fn concurrent_ends_keep_the_earliest(h: &StoreHarness) -> Proof {
    assert!(h.store.add_credential(credential(h, "lk_1"), audited(h, "added")).await?);
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (store, audit) = (Arc::clone(&h.store), audited(h, "ended"));
        racers.spawn(async move { store.end_credential(&"lk_1".into(), at(1_000 + (n * 5) % 12), None, audit).await });
    }
    while let Some(ended) = racers.join_next().await {
        assert!(ended??.is_some_and(|ended| ended.ends_at.is_some()));
    }
    let found = h.store.credential(&"lk_1".into()).await?.ok_or("it is gone")?;
    assert_eq!((found.ends_at, h.store.audit(0, 100).await?.len()), (Some(at(1_000)), 13));
    Ok(())
}

pub async fn a_credential_is_ended_only_while_the_one_it_is_given_goes_on(h: &StoreHarness) -> Proof {
    let expiring = Credential { ends_at: Some(at(5_000)), ..credential(h, "lk_expiring") };
    for new in [credential(h, "lk_1"), expiring.clone()] {
        assert!(h.store.add_credential(new, audited(h, "added")).await?);
    }
    let end = async |id: &str, other: &str, until| {
        let given = Some(GoesOn { id: other.into(), at: at(until) });
        h.store.end_credential(&id.into(), at(1_000), given, audited(h, "ended")).await
    };
    for (other, until) in [("nobody", 0), ("lk_expiring", 5_000), ("lk_expiring", 9_000)] {
        let as_it_was = end("lk_1", other, until).await?;
        assert_eq!(as_it_was, Some(credential(h, "lk_1")), "{other} at {until}");
    }
    assert_eq!(h.store.audit(0, 10).await?.len(), 2, "nothing was done, nothing is on record");
    let ended = end("lk_1", "lk_expiring", 4_999).await?.ok_or("it is gone")?;
    assert_eq!((ended.ends_at, h.store.audit(0, 10).await?.len()), (Some(at(1_000)), 3));
    assert_eq!(end("lk_expiring", "lk_1", 1_000).await?, Some(expiring), "what has ended does not go on");
    assert_eq!(end("nobody", "lk_expiring", 0).await?, None);
    Ok(())
}

pub async fn of_two_credentials_that_end_each_given_the_other_one_stays(h: &StoreHarness) -> Proof {
    const PAIRS: usize = 12;
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..PAIRS {
        let pair = [format!("a{n}"), format!("b{n}")];
        for id in &pair {
            assert!(h.store.add_credential(credential(h, id), audited(h, id)).await?);
        }
        for (id, other) in [(&pair[0], &pair[1]), (&pair[1], &pair[0])] {
            let (store, audit) = (Arc::clone(&h.store), audited(h, "ended"));
            let (id, other): (CredentialId, CredentialId) = (id.as_str().into(), other.as_str().into());
            let given = Some(GoesOn { id: other, at: at(1_000) });
            racers.spawn(async move { store.end_credential(&id, at(1_000), given, audit).await });
        }
    }
    while let Some(answer) = racers.join_next().await {
        assert!(answer??.is_some());
    }
    let left = all_credentials(&*h.store, 100).await?.into_iter().filter(|credential| credential.ends_at.is_none());
    let mut left: Vec<String> = left.map(|credential| credential.id.as_str()[1..].to_owned()).collect();
    left.sort();
    left.dedup();
    assert_eq!(left.len(), PAIRS, "one of each pair: {left:?}");
    assert_eq!(h.store.audit(0, 100).await?.len(), 3 * PAIRS, "and one of each was ended");
    Ok(())
}

pub async fn credentials_are_listed_by_id_and_kept_for_ever(h: &StoreHarness) -> Proof {
    for id in ["b", "a-c", "a", "B", "aé", "aa"] {
        assert!(h.store.add_credential(credential(h, id), audited(h, id)).await?);
        end(h, id, 0).await?;
    }
    h.advance_ms(10_000);
    assert_eq!(h.store.prune(Duration::ZERO, 100).await?, 0);
    let found = all_credentials(&*h.store, 2).await?;
    let ids: Vec<&str> = found.iter().map(|credential| credential.id.as_str()).collect();
    assert_eq!(ids, ["B", "a", "a-c", "aa", "aé", "b"]);
    assert!(found.iter().all(|credential| credential.ends_at == Some(at(0))));
    Ok(())
}

/// Over all pages of this size.
pub(super) async fn all_credentials(store: &dyn Store, limit: usize) -> super::stage::Found<Vec<Credential>> {
    let (mut after, mut found): (Option<CredentialId>, Vec<Credential>) = (None, Vec::new());
    loop {
        let page = store.credentials(after.as_ref(), limit).await?;
        let Some(last) = page.last() else { return Ok(found) };
        assert!(page.len() <= limit);
        after = Some(last.id.clone());
        found.extend(page);
    }
}

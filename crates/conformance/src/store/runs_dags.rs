//! Definitions and their versions.

use std::sync::Arc;

use super::runs_stage::audited;
use super::stage::{Found, Proof, StoreHarness};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::{DagRow, NewDag};

fn dag(h: &StoreHarness, tenant: &str, name: &str, text: &str) -> NewDag {
    NewDag {
        tenant: tenant.into(),
        name: name.into(),
        snapshot: format!("hash of {text}").into(),
        text: text.into(),
        actor: "ann".into(),
        pins: [("inner".into(), 2)].into(),
        audit: audited(h, name),
    }
}

async fn put(h: &StoreHarness, tenant: &str, name: &str, text: &str) -> Found<DagRow> {
    Ok(h.store.put_dag(dag(h, tenant, name, text)).await?)
}

pub async fn versions_of_a_dag_count_from_one(h: &StoreHarness) -> Proof {
    let mut kept = Vec::new();
    for (version, text) in (1..).zip(["a", "b", "c"]) {
        h.advance_ms(10);
        let row = put(h, "acme", "etl", text).await?;
        assert_eq!((row.version, row.at), (version, h.clock.now()));
        kept.push(row);
    }
    let tenant = "acme".into();
    for row in &kept {
        assert_eq!(h.store.dag(&tenant, "etl", Some(row.version)).await?.as_ref(), Some(row));
    }
    let first = &kept[0];
    assert_eq!((&*first.snapshot, &*first.text, first.actor.as_str()), ("hash of a", "a", "ann"));
    assert_eq!(first.pins, [("inner".into(), 2)].into());
    assert_eq!(h.store.dag(&tenant, "etl", None).await?, kept.pop());
    assert_eq!(h.store.dag(&tenant, "etl", Some(4)).await?, None);
    assert_eq!(h.store.dag(&tenant, "other", None).await?, None);
    Ok(())
}

pub async fn the_latest_text_again_is_the_same_version(h: &StoreHarness) -> Proof {
    put(h, "acme", "etl", "a").await?;
    let second = put(h, "acme", "etl", "b").await?;
    assert_eq!(h.store.audit(0, 100).await?.len(), 2);
    h.advance_ms(10);
    assert_eq!(put(h, "acme", "etl", "b").await?, second);
    assert_eq!(h.store.audit(0, 100).await?.len(), 2, "nothing happened");
    assert_eq!(put(h, "acme", "etl", "a").await?.version, 3, "going back is a version too");
    assert_eq!(h.store.audit(0, 100).await?.len(), 3);
    Ok(())
}

pub async fn a_dag_belongs_to_its_tenant(h: &StoreHarness) -> Proof {
    put(h, "acme", "etl", "a").await?;
    put(h, "acme", "etl", "b").await?;
    let theirs = put(h, "other", "etl", "b").await?;
    assert_eq!((theirs.version, theirs.tenant.as_str()), (1, "other"));
    assert_eq!(h.store.dag(&"other".into(), "etl", Some(2)).await?, None);
    assert_eq!(h.store.dags(&"other".into(), None, 10).await?, [theirs]);
    assert_eq!(h.store.dags(&"nobody".into(), None, 10).await?, []);
    Ok(())
}

pub async fn concurrent_texts_get_versions_of_their_own(h: &StoreHarness) -> Proof {
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..12 {
        let (store, dag) = (Arc::clone(&h.store), dag(h, "acme", "etl", &format!("text {n}")));
        racers.spawn(async move { store.put_dag(dag).await });
    }
    let mut versions = Vec::new();
    while let Some(row) = racers.join_next().await {
        let row = row??;
        assert_eq!(h.store.dag(&"acme".into(), "etl", Some(row.version)).await?.as_ref(), Some(&row));
        versions.push(row.version);
    }
    versions.sort_unstable();
    assert_eq!(versions, (1..=12).collect::<Vec<_>>());
    assert_eq!(h.store.audit(0, 100).await?.len(), 12);
    Ok(())
}

pub async fn dags_are_listed_by_name_with_their_latest_version(h: &StoreHarness) -> Proof {
    for name in ["b", "a-c", "a", "B", "aé", "aa"] {
        put(h, "acme", name, "one").await?;
        put(h, "other", name, "one").await?;
    }
    put(h, "acme", "a", "two").await?;
    let (tenant, mut after, mut found) = ("acme".into(), None, Vec::new());
    loop {
        let page = h.store.dags(&tenant, after.as_deref(), 2).await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(Arc::clone(&last.name));
        found.extend(page.into_iter().map(|row| (row.name.to_string(), row.version)));
    }
    let names: Vec<(&str, u32)> = found.iter().map(|(name, version)| (name.as_str(), *version)).collect();
    assert_eq!(names, [("B", 1), ("a", 2), ("a-c", 1), ("aa", 1), ("aé", 1), ("b", 1)]);
    Ok(())
}

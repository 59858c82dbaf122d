//! The audit trail and its blocks.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry, AuditRow, Block, Seal};
use lockgate_core::job::{Answer, Transition};
use lockgate_core::request::Json;
use lockgate_core::verdict::ApprovalTerms;

use super::stage::{Found, Proof, StoreHarness, allow, ask, cancel, deny, new_job, vote};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::ChangeError;

fn entry(n: usize) -> AuditEntry {
    AuditEntry {
        at: lockgate_core::time::Timestamp::from_millis(7),
        tenant: "acme".into(),
        actor: "ünal".into(),
        action: AuditAction::ALL[n % AuditAction::ALL.len()],
        subject: format!("subject {n}").into(),
        detail: Json::trusted(format!("{{\"n\":{n}}}")),
    }
}

async fn append(h: &StoreHarness, numbers: std::ops::Range<usize>) -> Proof {
    Ok(h.store.append_audit(numbers.map(entry).collect()).await?)
}

async fn entries(h: &StoreHarness) -> Found<Vec<AuditEntry>> {
    Ok(h.store.audit(0, 1_000).await?.into_iter().map(|row| row.entry).collect())
}

/// The next block over everything after the head.
async fn next_block(h: &StoreHarness) -> Found<Block> {
    let head = h.store.head().await?;
    let rows = h.store.audit(head.as_ref().map_or(0, |head| head.last), 1_000).await?;
    Block::over(head.as_ref(), &rows, h.clock.now()).ok_or_else(|| "nothing to seal".into())
}

pub async fn audit_rows_come_with_the_commit_they_are_about(h: &StoreHarness) -> Proof {
    let asked = h.birth("acme", new_job("asked"), ask(ApprovalTerms::default()))?;
    let granted = asked.job.next(vote(&asked.job, "bob", Answer::Approve), &h.env(allow()))?;
    let cancelled = granted.job.next(cancel(), &h.env(allow()))?;
    let denied = h.birth("other", new_job("denied"), deny())?;
    // Agreed to by a person, and denied by the policy of now: two rows of one commit.
    let doubted = h.birth("acme", new_job("doubted"), ask(ApprovalTerms::default()))?;
    let overruled = doubted.job.next(vote(&doubted.job, "bob", Answer::Approve), &h.env(deny()))?;
    let silent = h.birth("acme", new_job("silent"), allow())?;
    let all = [asked, granted, cancelled, denied, doubted, overruled, silent];
    let expected: Vec<AuditEntry> = all.iter().flat_map(Transition::audit).collect();
    let actions: Vec<AuditAction> = expected.iter().map(|entry| entry.action).collect();
    let (asked, approved, denied) = (AuditAction::ApprovalAsked, AuditAction::Approved, AuditAction::JobDenied);
    assert_eq!(actions, [asked, approved, AuditAction::JobCancelled, denied, asked, approved, denied]);
    let results = h.store.commit(all.map(Into::into).into()).await?;
    assert!(results.iter().all(Result::is_ok), "{results:?}");
    assert_eq!(entries(h).await?, expected);
    Ok(())
}

pub async fn a_refused_change_leaves_no_audit_row(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    h.step(&job, cancel()).await?;
    let before = entries(h).await?;
    let stale = job.next(cancel(), &h.env(allow()))?;
    let twin = h.birth("other", new_job("one"), deny())?;
    assert!(!stale.audit().is_empty() && !twin.audit().is_empty());
    let results = h.store.commit(vec![stale.into(), twin.into()]).await?;
    assert_eq!(results[0], Err(ChangeError::Conflict));
    assert!(matches!(results[1], Err(ChangeError::Taken(_))), "{results:?}");
    assert_eq!(entries(h).await?, before);
    Ok(())
}

pub async fn audit_numbers_grow_and_pages_go_on_after_one(h: &StoreHarness) -> Proof {
    append(h, 0..3).await?;
    let job = h.submit_as("acme", new_job("one"), deny()).await?;
    append(h, 3..5).await?;
    let rows = h.store.audit(0, 100).await?;
    assert!(rows.len() == 6 && rows[0].id > 0 && rows.is_sorted_by(|a, b| a.id < b.id), "{rows:?}");
    assert_eq!(&*rows[3].entry.subject, job.request.job_id.as_str());
    let (mut after, mut paged) = (0, Vec::new());
    loop {
        let page = h.store.audit(after, 4).await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        paged.extend(page);
    }
    assert_eq!(paged, rows);
    Ok(())
}

pub async fn rows_without_a_commit_of_their_own_are_appended(h: &StoreHarness) -> Proof {
    append(h, 0..0).await?;
    append(h, 0..AuditAction::ALL.len()).await?;
    assert_eq!(entries(h).await?, (0..AuditAction::ALL.len()).map(entry).collect::<Vec<_>>());
    Ok(())
}

pub async fn blocks_seal_what_was_read_and_verify_when_read_again(h: &StoreHarness) -> Proof {
    assert_eq!((h.store.head().await?, h.store.blocks(0, 10).await?), (None, Vec::new()));
    let mut sealed = Vec::new();
    for n in 0..3 {
        append(h, n * 2..n * 2 + 2).await?;
        h.advance_ms(1);
        let block = next_block(h).await?;
        assert!(h.store.seal(&block).await?);
        assert_eq!(h.store.head().await?.as_ref(), Some(&block));
        sealed.push(block);
    }
    assert_eq!(h.store.blocks(0, 10).await?, sealed);
    assert_eq!(h.store.blocks(1, 1).await?, sealed[1..2]);
    let rows = h.store.audit(0, 100).await?;
    let mut before = None;
    for block in &sealed {
        let its: Vec<AuditRow> = rows.iter().filter(|row| (block.first..=block.last).contains(&row.id)).cloned().collect();
        block.verify(before, &its)?;
        before = Some(block);
    }
    Ok(())
}

pub async fn a_block_is_added_only_on_the_head(h: &StoreHarness) -> Proof {
    append(h, 0..2).await?;
    let first = next_block(h).await?;
    let refused = async |block: Block| Ok::<_, lockgate_ports::StoreError>(!h.store.seal(&block).await?);
    assert!(refused(Block { no: 2, ..first.clone() }).await?, "nothing is before it");
    assert!(refused(Block { previous: Seal([7; 32]), ..first.clone() }).await?, "it continues another");
    assert!(h.store.seal(&first).await?);
    assert!(refused(first.clone()).await?, "sealed already");
    append(h, 2..4).await?;
    let second = next_block(h).await?;
    assert!(refused(Block { no: 3, ..second.clone() }).await?, "one is missing");
    assert!(refused(Block { no: 1, previous: Seal::default(), ..second.clone() }).await?, "not behind the head");
    assert!(refused(Block { previous: Seal::default(), ..second.clone() }).await?, "another chain");
    assert_eq!(h.store.blocks(0, 10).await?, std::slice::from_ref(&first));
    assert!(h.store.seal(&second).await?);
    assert_eq!(h.store.blocks(0, 10).await?, [first, second]);
    Ok(())
}

pub async fn concurrent_sealers_have_one_winner(h: &StoreHarness) -> Proof {
    append(h, 0..2).await?;
    let rows = h.store.audit(0, 100).await?;
    let mut racers = tokio::task::JoinSet::new();
    for n in 0..16 {
        // Each at its own time, so that no two blocks are the same.
        let sealed_at = h.clock.now() + Duration::from_millis(n);
        let mine = Block::over(None, &rows, sealed_at).ok_or("nothing to seal")?;
        let store = Arc::clone(&h.store);
        racers.spawn(async move { store.seal(&mine).await.map(|won| won.then_some(mine)) });
    }
    let mut winners = Vec::new();
    while let Some(result) = racers.join_next().await {
        winners.extend(result??);
    }
    assert_eq!(winners.len(), 1);
    assert_eq!(h.store.blocks(0, 10).await?, winners);
    Ok(())
}

pub async fn pruning_spares_the_trail(h: &StoreHarness) -> Proof {
    h.submit_as("acme", new_job("one"), deny()).await?;
    let block = next_block(h).await?;
    assert!(h.store.seal(&block).await?);
    let before = h.store.audit(0, 100).await?;
    h.advance_ms(10);
    assert_eq!(h.store.prune(Duration::ZERO, 10).await?, 1);
    assert_eq!((h.store.audit(0, 100).await?, h.store.head().await?), (before, Some(block)));
    Ok(())
}

//! Holds of limits, from the claim to the end of the attempt (L-6).

use super::limits::TWO_AT_ONCE;
use super::stage::{Stage, gone, returned, seqs, tenant, token, topic};
use lockgate_ports::lanes::Hold;

pub async fn a_limit_is_taken_by_claims_and_freed_by_the_end_of_their_attempts(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let jobs = stage.wait_many(4, &topic("echo")).await;
    let mut claims = stage.claim(&["echo"], 9).await;
    assert_eq!(seqs(&claims), [jobs[0].seq.0, jobs[1].seq.0]);
    assert!(stage.claim(&["echo"], 9).await.is_empty(), "claims count before they are settled");
    let second = claims.remove(1);
    let first = stage.start(claims.remove(0)).await;
    stage.start(second).await;
    assert!(stage.claim(&["echo"], 9).await.is_empty(), "what runs counts");
    assert!(stage.release(&first).await);
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [jobs[2].seq.0]);
}

pub async fn a_claim_that_came_to_nothing_frees_its_limits(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let jobs = stage.wait_many(4, &topic("echo")).await;
    let claims = stage.claim(&["echo"], 9).await;
    assert_eq!(seqs(&claims), [jobs[0].seq.0, jobs[1].seq.0]);
    stage.remove(&jobs[1].lane(), jobs[1].ready_key());
    let (returned, gone) = (returned(&claims[0], &jobs[0]), gone(&claims[1]));
    stage.lanes.settle(vec![returned, gone]).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [jobs[0].seq.0, jobs[2].seq.0]);
}

pub async fn attempts_that_run_already_count_after_a_start(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let jobs = stage.wait_many(3, &tenant("other")).await;
    let lane = jobs[0].lane();
    let hold = |seq| Hold { lane: lane.clone(), pool: "default".into(), token: token(seq) };
    stage.lanes.hold(vec![hold(71), hold(72), hold(72)]).await;
    stage.lanes.hold(vec![hold(71)]).await;
    let mut holding = stage.holding().await;
    holding.sort();
    assert_eq!(holding, [token(71), token(72)]);
    assert!(stage.claim(&["echo"], 9).await.is_empty());
    assert!(stage.release(&token(71)).await);
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [jobs[0].seq.0]);
}

pub async fn more_may_run_than_a_limit_allows_and_then_nothing_starts(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let job = stage.wait(&topic("echo")).await;
    let hold = |seq| Hold { lane: job.lane(), pool: "default".into(), token: token(seq) };
    stage.lanes.hold((71..75).map(hold).collect()).await;
    for seq in [71, 72] {
        assert!(!stage.release(&token(seq)).await);
        assert!(stage.claim(&["echo"], 9).await.is_empty());
    }
    assert!(stage.release(&token(73)).await);
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
}

pub async fn a_token_freed_twice_frees_once(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    stage.wait_many(9, &topic("echo")).await;
    let mut tokens = Vec::new();
    for claim in stage.claim(&["echo"], 9).await {
        tokens.push(stage.start(claim).await);
    }
    assert!(!stage.release(&token(999)).await, "unknown ones are ignored");
    stage.lanes.release(vec![tokens[0].clone(), tokens[0].clone()]).await;
    stage.release(&tokens[0]).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
    assert_eq!(stage.holding().await, [tokens[1].clone()]);
}

pub async fn new_pools_keep_what_is_held(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    stage.wait_many(9, &topic("echo")).await;
    let mut claims = stage.claim(&["echo"], 9).await;
    let under_way = claims.remove(1);
    let running = stage.start(claims.remove(0)).await;
    let wider = TWO_AT_ONCE.replace("max_concurrent: 2", "max_concurrent: 3");
    stage.adopt(&wider).await;
    let started = stage.start(under_way).await;
    let mut holding = stage.holding().await;
    holding.sort();
    let mut expected = [running, started.clone()];
    expected.sort();
    assert_eq!(holding, expected);
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1, "two of three are held");
    stage.release(&started).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
    stage.adopt("topics: {'*': default}\npools: {default: {}}").await;
    assert!(stage.claim(&["echo"], 99).await.len() > 3, "the limit is gone");
}

/// The lanes are rebuilt, or get a new layout, while a process holds a claim, and the job is claimed again.
pub async fn what_is_said_of_a_claim_ends_no_later_one(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let job = stage.wait(&topic("echo")).await;
    let first = stage.claim(&["echo"], 1).await.remove(0);
    stage.lanes.rebuild(stage.ready_lanes()).await;
    let second = stage.claim(&["echo"], 1).await.remove(0);
    stage.adopt(TWO_AT_ONCE).await;
    let third = stage.claim(&["echo"], 1).await.remove(0);
    assert_eq!([second.key, third.key], [first.key, first.key]);
    let others = stage.wait_many(2, &topic("echo")).await;
    for late in [first, second] {
        stage.lanes.settle(vec![gone(&late), returned(&late, &job)]).await;
    }
    let claims = stage.claim(&["echo"], 9).await;
    assert_eq!(seqs(&claims), [others[0].seq.0], "the third one counts, and its job is nobody else's");
    stage.lanes.settle(vec![returned(&third, &job)]).await;
    assert_eq!(seqs(&stage.claim(&["echo"], 9).await), [job.seq.0]);
}

pub async fn a_claim_that_new_pools_found_ends_as_any_other(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    let job = stage.wait(&topic("echo")).await;
    let claim = stage.claim(&["echo"], 1).await.remove(0);
    stage.remove(&job.lane(), job.ready_key());
    stage.adopt(TWO_AT_ONCE).await;
    stage.wait_many(3, &topic("echo")).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1, "it counts");
    stage.lanes.settle(vec![gone(&claim)]).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
}

/// A rebuild forgets claims; the attempt of a forgotten claim runs nevertheless.
pub async fn an_attempt_whose_claim_was_forgotten_counts(mut stage: Stage) {
    stage.adopt(TWO_AT_ONCE).await;
    stage.wait_many(9, &topic("echo")).await;
    let claims = stage.claim(&["echo"], 9).await;
    stage.lanes.rebuild(stage.ready_lanes()).await;
    let mut tokens = Vec::new();
    for claim in claims {
        tokens.push(stage.start(claim).await);
    }
    assert!(stage.claim(&["echo"], 9).await.is_empty());
    stage.release(&tokens[1]).await;
    assert_eq!(stage.claim(&["echo"], 9).await.len(), 1);
}

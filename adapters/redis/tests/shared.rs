//! What several processes do to one set of lanes.

mod support;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use lockgate_conformance::lanes::stage::{Spec, gone, job, returned, seqs, shapes, tenant, token};
use lockgate_core::pools::{DEFAULT_POOL, Pools};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Adopted, Claim, ClaimRequest, Condition, LaneLayout, Lanes, Refill, Seat, Settlement};
use lockgate_redis::{Options, RedisLanes};
use support::options;

const TWO_AT_ONCE: &str = "topics: {'*': default}\npools: {default: {}}\nlimits: [{name: all, max_concurrent: 2}]";
const PLAIN: &str = "topics: {'*': default}\npools: {default: {}}";

fn layout(version: u64, yaml: &str) -> LaneLayout {
    LaneLayout { version, pools: Arc::new(Pools::load("pools.yaml", yaml).unwrap()) }
}

async fn process(options: &Options, version: u64, yaml: &str) -> (RedisLanes, Adopted) {
    let lanes = RedisLanes::connect(options).await.unwrap();
    let adopted = lanes.adopt(layout(version, yaml), Vec::new()).await;
    (lanes, adopted)
}

async fn two(options: &Options, yaml: &str) -> (Arc<RedisLanes>, Arc<RedisLanes>) {
    let (first, adopted) = process(options, 1, yaml).await;
    assert_eq!(adopted, Adopted::Anew);
    first.rebuild(Vec::new()).await;
    let (second, adopted) = process(options, 1, yaml).await;
    assert_eq!(adopted, Adopted::Already);
    (Arc::new(first), Arc::new(second))
}

async fn claim(lanes: &RedisLanes, free: usize) -> Vec<Claim> {
    let seats = vec![Seat { shapes: shapes(&["echo"]), free }];
    let (pool, serving, now) = (DEFAULT_POOL.into(), DEFAULT_POOL.into(), Timestamp::from_millis(10_000));
    lanes.claim(ClaimRequest { pool, serving, seats, limit: usize::MAX, now }).await.claims
}

fn sent(claim: Claim) -> Settlement {
    Settlement::Sent { token: token(claim.key.seq.0), lane: claim.lane, key: claim.key }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_never_claim_the_same_job() {
    let (first, second) = two(&options(), PLAIN).await;
    let names = ["a", "b", "c", "d", "e"];
    for chunk in 0..10 {
        let of = |n: i64| Arc::new(job(&tenant(names[(n % 5) as usize]), chunk * 1_000 + n));
        let offering = if chunk % 2 == 0 { &first } else { &second };
        offering.offer((0..1_000).map(of).collect()).await;
    }
    let drain = |lanes: Arc<RedisLanes>| async move {
        let mut taken = Vec::new();
        loop {
            let claims = claim(&lanes, 70).await;
            if claims.is_empty() {
                return taken;
            }
            taken.extend(seqs(&claims));
            lanes.settle(claims.into_iter().map(sent).collect()).await;
        }
    };
    let (one, other) = tokio::join!(tokio::spawn(drain(first)), tokio::spawn(drain(second)));
    let (one, other) = (one.unwrap(), other.unwrap());
    let all: BTreeSet<i64> = one.iter().chain(&other).copied().collect();
    assert_eq!((one.len() + other.len(), all.len()), (10_000, 10_000));
    assert!(!one.is_empty() && !other.is_empty(), "{} and {}", one.len(), other.len());
}

#[tokio::test]
async fn two_processes_together_stay_within_a_limit() {
    let (first, second) = two(&options(), TWO_AT_ONCE).await;
    first.offer((0..50).map(|n| Arc::new(job(&Spec::default(), n))).collect()).await;
    let (mut running, mut done) = (Vec::new(), 0);
    while done < 50 {
        for lanes in [&first, &second] {
            let claims = claim(lanes, 2).await;
            running.extend(claims.iter().map(|claim| token(claim.key.seq.0)));
            lanes.settle(claims.into_iter().map(sent).collect()).await;
        }
        assert_eq!(running.len(), 2.min(50 - done), "both together, no more and no less");
        done += 1;
        // Ended by the other process than the one that started it, half of the time.
        second.release(vec![running.remove(0)]).await;
    }
    assert!(first.holding().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_lane_is_asked_for_by_one_process_at_a_time() {
    let (first, second) = two(&options(), PLAIN).await;
    let jobs: Vec<_> = (0..3).map(|n| Arc::new(job(&Spec::default(), n))).collect();
    first.rebuild(vec![(jobs[0].lane(), 3)]).await;
    let asks = first.refill_requests().await;
    assert_eq!(asks.len(), 1);
    assert_eq!(second.refill_requests().await, [], "it is the other's");
    let again = first.refill_requests().await;
    assert_eq!((again.len(), again[0].ticket > asks[0].ticket), (1, true), "its own it may ask for again");
    first.refill(Refill { asked: asks[0].clone(), jobs: Vec::new() }).await;
    assert_eq!(first.refill_requests().await.len(), 1, "the late answer was ignored");
    let asked = first.refill_requests().await.remove(0);
    first.refill(Refill { asked, jobs }).await;
    assert_eq!(seqs(&claim(&second, 9).await), [0, 1, 2]);
}

#[tokio::test]
async fn claims_whose_time_is_up_come_back_with_their_limits() {
    let short = Options { claim_lease: Duration::ZERO, ..options() };
    let (dead, _) = process(&short, 1, TWO_AT_ONCE).await;
    dead.rebuild(Vec::new()).await;
    dead.offer((0..3).map(|n| Arc::new(job(&Spec::default(), n))).collect()).await;
    assert_eq!(seqs(&claim(&dead, 9).await), [0, 1]);
    let (alive, _) = process(&Options { claim_lease: Duration::from_secs(10), ..short }, 1, TWO_AT_ONCE).await;
    let claims = claim(&alive, 9).await;
    assert_eq!(seqs(&claims), [0, 1], "back at their places, with room for two");
    assert!(claim(&alive, 9).await.is_empty(), "these are held");
    // The dead one was only slow. Its attempt runs, so it counts.
    dead.settle(claims.into_iter().map(sent).collect()).await;
    assert_eq!(alive.holding().await.unwrap(), [token(0), token(1)]);
    alive.release(vec![token(0)]).await;
    assert_eq!(seqs(&claim(&alive, 9).await), [2]);
}

/// A process whose claim has expired settles it after another process claimed the job.
#[tokio::test]
async fn the_end_of_a_claim_whose_time_was_up_is_not_that_of_the_next_one() {
    let short = Options { claim_lease: Duration::ZERO, ..options() };
    let (slow, _) = process(&short, 1, TWO_AT_ONCE).await;
    slow.rebuild(Vec::new()).await;
    let jobs: Vec<_> = (0..3).map(|n| Arc::new(job(&Spec::default(), n))).collect();
    slow.offer(jobs.clone()).await;
    let late = claim(&slow, 1).await.remove(0);
    let (next, _) = process(&Options { claim_lease: Duration::from_secs(10), ..short }, 1, TWO_AT_ONCE).await;
    assert_eq!(seqs(&claim(&next, 1).await), [0]);
    slow.settle(vec![gone(&late), returned(&late, &jobs[0])]).await;
    assert_eq!(seqs(&claim(&next, 9).await), [1], "the first is not to be had, and counts");
}

#[tokio::test]
async fn an_attempt_whose_claim_had_gone_back_counts_and_is_not_claimed_again() {
    let short = Options { claim_lease: Duration::ZERO, ..options() };
    let (lanes, _) = process(&short, 1, TWO_AT_ONCE).await;
    lanes.rebuild(Vec::new()).await;
    lanes.offer((0..4).map(|n| Arc::new(job(&Spec::default(), n))).collect()).await;
    let mut claims = claim(&lanes, 1).await;
    assert!(claim(&lanes, 0).await.is_empty(), "lets its time end");
    lanes.settle(vec![sent(claims.remove(0))]).await;
    assert_eq!(lanes.holding().await.unwrap(), [token(0)]);
    assert_eq!(seqs(&claim(&lanes, 9).await), [1]);
}

#[tokio::test]
async fn a_process_with_an_older_layout_does_nothing_until_it_adopts_and_is_behind_then() {
    let options = options();
    let (late, _) = process(&options, 1, PLAIN).await;
    late.rebuild(Vec::new()).await;
    let (early, adopted) = process(&options, 2, TWO_AT_ONCE).await;
    assert_eq!(adopted, Adopted::Anew);
    early.rebuild(Vec::new()).await;
    let unheard = Arc::new(job(&Spec::default(), 1));
    late.offer(vec![unheard.clone()]).await;
    assert!(claim(&late, 9).await.is_empty() && claim(&early, 9).await.is_empty());
    assert_eq!(early.condition().await, Condition::Sound);
    assert_eq!(late.condition().await, Condition::Sound, "there is nothing that it could do");
    assert_eq!(late.adopt(layout(1, PLAIN), Vec::new()).await, Adopted::Outdated);
    assert_eq!(late.adopt(layout(2, TWO_AT_ONCE), Vec::new()).await, Adopted::Already);
    assert_eq!(late.condition().await, Condition::Behind);
    late.rebuild(vec![(unheard.lane(), 1)]).await;
    assert_eq!(late.condition().await, Condition::Sound);
    let asked = late.refill_requests().await.remove(0);
    late.refill(Refill { asked, jobs: vec![unheard] }).await;
    assert_eq!(seqs(&claim(&early, 9).await), [1]);
}

/// Between the new pools and the moment in which a process hears of them, attempts of its workers end.
#[tokio::test]
async fn what_ended_under_an_older_layout_is_freed_as_soon_as_the_new_one_is_adopted() {
    let options = options();
    let (late, _) = process(&options, 1, TWO_AT_ONCE).await;
    late.rebuild(Vec::new()).await;
    late.offer((0..3).map(|n| Arc::new(job(&Spec::default(), n))).collect()).await;
    let claims = claim(&late, 9).await;
    late.settle(claims.into_iter().map(sent).collect()).await;
    let (early, adopted) = process(&options, 2, TWO_AT_ONCE).await;
    assert_eq!(adopted, Adopted::Anew);
    assert!(!late.release(vec![token(0)]).await, "not heard");
    assert_eq!(early.holding().await.unwrap(), [token(0), token(1)]);
    assert_eq!(late.adopt(layout(2, TWO_AT_ONCE), Vec::new()).await, Adopted::Already);
    assert_eq!(early.holding().await.unwrap(), [token(1)]);
}

#[tokio::test]
async fn lanes_that_were_laid_out_and_never_filled_are_behind_for_everybody() {
    let options = options();
    let (first, _) = process(&options, 1, PLAIN).await;
    let (second, _) = process(&options, 1, PLAIN).await;
    assert_eq!((first.condition().await, second.condition().await), (Condition::Behind, Condition::Behind));
    second.rebuild(Vec::new()).await;
    assert_eq!((first.condition().await, second.condition().await), (Condition::Sound, Condition::Sound));
}

#[tokio::test]
async fn names_and_limits_that_nothing_uses_are_forgotten_and_may_come_back() {
    let options = options();
    let limits = "topics: {'*': default}\npools: {default: {}}\nlimits: [{name: keys, per: [tenant], max_concurrent: 1}]";
    let (first, second) = two(&options, limits).await;
    let name = |n: i64| -> &'static str { Box::leak(format!("tenant-{n}").into_boxed_str()) };
    let jobs: Vec<_> = (0..4_000).map(|n| Arc::new(job(&tenant(name(n)), n))).collect();
    for batch in jobs.chunks(500) {
        first.offer(batch.to_vec()).await;
        let claims = claim(&second, 500).await;
        assert_eq!(claims.len(), 500);
        let tokens = claims.iter().map(|claim| token(claim.key.seq.0)).collect();
        second.settle(claims.into_iter().map(sent).collect()).await;
        second.release(tokens).await;
    }
    let kept = first.shares(usize::MAX).await.unwrap().len();
    assert!(kept < 2_000, "{kept} tenants are still known");
    // The first process thinks that the server knows this lane.
    first.offer(vec![jobs[0].clone()]).await;
    assert_eq!(seqs(&claim(&second, 9).await), [0]);
}

#[tokio::test]
async fn a_claim_knows_the_jobs_that_this_process_offered_and_the_ids_of_the_others() {
    let (first, second) = two(&options(), PLAIN).await;
    first.offer(vec![Arc::new(job(&tenant("a"), 1))]).await;
    second.offer(vec![Arc::new(job(&tenant("b"), 2))]).await;
    let claims = claim(&first, 9).await;
    let known: Vec<_> = claims.iter().map(|claim| (claim.job_id.to_string(), claim.job.is_some())).collect();
    assert_eq!(known, [("job-1".to_owned(), true), ("job-2".to_owned(), false)]);
}

#[tokio::test]
async fn a_batch_of_any_size_costs_one_round_trip_for_each_thousand() {
    let (lanes, _) = two(&options(), PLAIN).await;
    let jobs: Vec<_> = (0..1_000).map(|n| Arc::new(job(&Spec::default(), n))).collect();
    lanes.offer(jobs[..1].to_vec()).await;
    lanes.settle(claim(&lanes, 1).await.into_iter().map(sent).collect()).await;
    let before = lanes.counters().round_trips;
    lanes.offer(jobs[1..].to_vec()).await;
    let claims = claim(&lanes, 1_000).await;
    lanes.settle(claims.into_iter().map(sent).collect()).await;
    assert_eq!(lanes.counters().round_trips - before, 3);
}

/// Commands that the server ran, those inside of scripts too.
fn commands(redis: &lockgate_testbed::Redis) -> u64 {
    let stats = redis.command("INFO commandstats").expect("an answer");
    let calls =
        stats.lines().filter(|line| !line.starts_with("cmdstat_info")).filter_map(|line| line.split("calls=").nth(1));
    calls.filter_map(|rest| rest.split(',').next()?.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn looking_at_queues_costs_the_same_however_long_they_are() {
    let redis = lockgate_testbed::Redis::start().expect("a server");
    let mut costs = Vec::new();
    for jobs in [1_000, 1_000_000] {
        let options =
            Options { response_timeout: Duration::from_secs(10), ..Options::new(redis.url(), format!("q-{jobs}")) };
        let (lanes, _) = process(&options, 1, PLAIN).await;
        lanes.rebuild(vec![(job(&Spec::default(), 1).lane(), jobs)]).await;
        // The first time, the server has to be told the script.
        lanes.depths(usize::MAX).await.unwrap();
        let before = commands(&redis);
        let depths = lanes.depths(usize::MAX).await.unwrap();
        assert_eq!(depths.iter().map(|depth| depth.waiting).sum::<u64>(), jobs);
        costs.push(commands(&redis) - before);
    }
    assert_eq!(costs[0], costs[1], "commands for a thousand and for a million");
}

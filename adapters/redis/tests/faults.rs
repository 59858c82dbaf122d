//! What the lanes say and do when the server fails them. Each case has a server of its own.

mod tls;

use std::sync::Arc;
use std::time::Duration;

use lockgate_conformance::lanes::stage::{Spec, job, seqs, shapes, token};
use lockgate_core::job::Job;
use lockgate_core::pools::DEFAULT_POOL;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Adopted, Claim, ClaimRequest, Condition, Hold, LaneLayout, Lanes, Refill, Seat, Settlement};
use lockgate_redis::{ConnectError, Options, RedisLanes};
use lockgate_testbed::Redis;
use tokio::time::Instant;

fn layout() -> LaneLayout {
    LaneLayout { version: 1, pools: Arc::default() }
}

async fn start() -> (Redis, RedisLanes) {
    let server = Redis::start().unwrap();
    let lanes = RedisLanes::connect(&Options::new(server.url(), "faults")).await.unwrap();
    assert_eq!(lanes.condition().await, Condition::Blank);
    assert_eq!(lanes.adopt(layout(), Vec::new()).await, Adopted::Anew);
    lanes.rebuild(Vec::new()).await;
    assert_eq!(lanes.condition().await, Condition::Sound);
    (server, lanes)
}

fn jobs(range: std::ops::Range<i64>) -> Vec<Arc<Job>> {
    range.map(|n| Arc::new(job(&Spec::default(), n))).collect()
}

async fn claim(lanes: &RedisLanes) -> Vec<Claim> {
    let seats = vec![Seat { shapes: shapes(&["echo"]), free: 100 }];
    let (pool, serving, now) = (DEFAULT_POOL.into(), DEFAULT_POOL.into(), Timestamp::from_millis(10_000));
    lanes.claim(ClaimRequest { pool, serving, seats, limit: usize::MAX, now }).await.claims
}

/// What the engine does with lanes that lost their memory or missed something.
async fn rebuild(lanes: &RedisLanes, jobs: &[Arc<Job>]) {
    lanes.rebuild(vec![(jobs[0].lane(), jobs.len() as u64)]).await;
    let asked = lanes.refill_requests().await.remove(0);
    lanes.refill(Refill { asked, jobs: jobs.to_vec() }).await;
}

/// Asks until the answer is the one that must come; a server needs a moment to be reachable again.
async fn until(lanes: &RedisLanes, condition: &Condition) {
    let asking = async {
        while lanes.condition().await != *condition {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), asking).await.unwrap_or_else(|_| panic!("never {condition:?}"));
}

#[tokio::test]
async fn an_emptied_server_is_blank_and_everything_comes_back() {
    let (server, lanes) = start().await;
    lanes.offer(jobs(0..5)).await;
    server.command("FLUSHALL").unwrap();
    assert!(claim(&lanes).await.is_empty());
    assert!(lanes.depths(9).await.is_err(), "what was forgotten waits all the same");
    lanes.offer(jobs(5..6)).await;
    assert_eq!(lanes.condition().await, Condition::Blank);
    assert_eq!(lanes.adopt(layout(), Vec::new()).await, Adopted::Anew);
    assert_eq!(lanes.condition().await, Condition::Behind);
    rebuild(&lanes, &jobs(0..6)).await;
    assert_eq!(lanes.condition().await, Condition::Sound);
    assert_eq!(seqs(&claim(&lanes).await), [0, 1, 2, 3, 4, 5]);
}

#[tokio::test]
async fn a_restarted_server_is_blank() {
    let (mut server, lanes) = start().await;
    lanes.offer(jobs(0..2)).await;
    server.restart().unwrap();
    until(&lanes, &Condition::Blank).await;
    assert_eq!(lanes.adopt(layout(), Vec::new()).await, Adopted::Anew);
    rebuild(&lanes, &jobs(0..2)).await;
    assert_eq!(seqs(&claim(&lanes).await), [0, 1]);
}

/// A server that comes back with its data has an earlier state of it, or another's.
#[tokio::test]
async fn what_another_life_of_a_server_knew_is_not_believed() {
    let (server, lanes) = start().await;
    lanes.offer(jobs(0..2)).await;
    server.command("HSET {lockgate:faults}:meta server somebody-else").unwrap();
    assert!(claim(&lanes).await.is_empty());
    assert_eq!(lanes.condition().await, Condition::Blank);
    assert_eq!(lanes.adopt(layout(), Vec::new()).await, Adopted::Anew);
    lanes.rebuild(Vec::new()).await;
    assert!(claim(&lanes).await.is_empty(), "nothing of it is left");
}

#[tokio::test]
async fn a_server_that_hangs_is_away_within_the_timeout_and_comes_back() {
    let (server, lanes) = start().await;
    lanes.offer(jobs(0..2)).await;
    server.pause();
    let begun = Instant::now();
    let claims = claim(&lanes).await;
    assert!(claims.is_empty() && begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    lanes.offer(jobs(2..3)).await;
    assert!(matches!(lanes.condition().await, Condition::Away(reason) if reason.contains("answer")));
    server.resume();
    until(&lanes, &Condition::Behind).await;
    rebuild(&lanes, &jobs(0..3)).await;
    assert_eq!(lanes.condition().await, Condition::Sound);
    assert_eq!(seqs(&claim(&lanes).await), [0, 1, 2]);
}

#[tokio::test]
async fn what_ended_while_the_server_was_away_is_freed_when_it_is_back() {
    let (server, lanes) = start().await;
    let limits = "topics: {'*': default}\npools: {default: {max_concurrent: 2}}";
    let pools = Arc::new(lockgate_core::pools::Pools::load("pools.yaml", limits).unwrap());
    lanes.adopt(LaneLayout { version: 2, pools }, Vec::new()).await;
    let hold = |n: i64| Hold { lane: job(&Spec::default(), n).lane(), pool: DEFAULT_POOL.into(), token: token(n) };
    lanes.hold(vec![hold(0), hold(1)]).await;
    server.pause();
    assert!(!lanes.release(vec![token(0)]).await);
    server.resume();
    until(&lanes, &Condition::Behind).await;
    assert_eq!(lanes.holding().await.unwrap(), [token(1)]);
}

/// Another process may have lost a call and ended before it could ask for a rebuild.
#[tokio::test]
async fn whoever_saw_an_outage_has_the_lanes_rebuilt_after_it() {
    let (server, lanes) = start().await;
    server.pause();
    assert!(matches!(lanes.condition().await, Condition::Away(_)));
    server.resume();
    until(&lanes, &Condition::Behind).await;
    rebuild(&lanes, &jobs(0..3)).await;
    assert_eq!(lanes.condition().await, Condition::Sound);
    assert_eq!(seqs(&claim(&lanes).await), [0, 1, 2]);
}

#[tokio::test]
async fn a_server_that_is_gone_costs_nothing_and_is_not_taken_for_an_empty_one() {
    let (mut server, lanes) = start().await;
    server.kill();
    lanes.offer(jobs(0..1)).await;
    let gone = &jobs(0..1)[0];
    lanes.settle(vec![Settlement::Gone { lane: gone.lane(), key: gone.ready_key(), claim: None }]).await;
    lanes.hold(vec![Hold { lane: gone.lane(), pool: DEFAULT_POOL.into(), token: token(0) }]).await;
    lanes.rebuild(Vec::new()).await;
    assert!(!lanes.release(vec![token(0)]).await);
    assert!(lanes.refill_requests().await.is_empty());
    assert!(lanes.demand().await.is_err() && lanes.depths(9).await.is_err() && lanes.claimed_total().await.is_err());
    assert!(lanes.holding().await.is_err() && lanes.shares(9).await.is_err());
    assert_eq!(lanes.adopt(layout(), Vec::new()).await, Adopted::Outdated);
    assert!(matches!(lanes.condition().await, Condition::Away(_)));
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let (server, lanes) = start().await;
    server.command("SCRIPT FLUSH").unwrap();
    lanes.offer(jobs(0..2)).await;
    assert_eq!(seqs(&claim(&lanes).await), [0, 1]);
    assert_eq!(lanes.condition().await, Condition::Sound);
}

/// A script that cannot go on has changed some things and not others.
#[tokio::test]
async fn lanes_that_make_no_sense_are_blank() {
    let (server, lanes) = start().await;
    lanes.offer(jobs(0..2)).await;
    let era = server.command("HGET {lockgate:faults}:meta era").unwrap();
    let era = era.lines().nth(1).unwrap();
    server.command(&format!("SET {{lockgate:faults}}:{era}:leases nonsense")).unwrap();
    assert!(claim(&lanes).await.is_empty());
    until(&lanes, &Condition::Blank).await;
}

#[tokio::test]
async fn a_server_that_throws_keys_away_is_refused() {
    let (server, _) = start().await;
    server.command("CONFIG SET maxmemory-policy allkeys-lru").unwrap();
    let refused = RedisLanes::connect(&Options::new(server.url(), "faults")).await.err();
    assert!(matches!(&refused, Some(ConnectError::Evicts(policy)) if policy == "allkeys-lru"), "{refused:?}");
    server.command("CONFIG SET maxmemory-policy volatile-lru").unwrap();
    assert!(RedisLanes::connect(&Options::new(server.url(), "faults")).await.is_ok(), "our keys have no expiry");
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_settings_is_used_all_the_same() {
    let (server, _) = start().await;
    server.command("ACL SETUSER plain on >secret ~* &* +@all -config").unwrap();
    let url = server.url().replace("redis://", "redis://plain:secret@");
    assert!(RedisLanes::connect(&Options::new(url, "faults")).await.is_ok());
    let wrong = RedisLanes::connect(&Options::new(server.url().replace("redis://", "redis://plain:wrong@"), "faults")).await;
    assert!(matches!(wrong.err(), Some(ConnectError::Unreachable(_) | ConnectError::Refuses(_))));
}

/// A cluster takes a script only if all its keys are of one slot. And what a layout leaves behind is cleared away.
#[tokio::test]
async fn every_key_carries_the_tag_of_its_installation_and_old_layouts_leave_none() {
    let (server, lanes) = start().await;
    let limits = "topics: {'*': default}\npools: {default: {tenant_max_concurrent: 1, max_concurrent: 9}}\n\
                  limits: [{name: pace, rate: 3/s}]";
    let pools = Arc::new(lockgate_core::pools::Pools::load("pools.yaml", limits).unwrap());
    lanes.offer(jobs(0..3)).await;
    let before = keys(&server);
    lanes.adopt(LaneLayout { version: 2, pools }, Vec::new()).await;
    lanes.rebuild(vec![(jobs(0..1)[0].lane(), 9)]).await;
    lanes.offer(jobs(0..9)).await;
    let claims = claim(&lanes).await;
    assert_eq!(claims.len(), 1);
    let sent = |claim: Claim| Settlement::Sent { lane: claim.lane, key: claim.key, token: token(claim.key.seq.0) };
    lanes.settle(claims.into_iter().map(sent).collect()).await;
    let cleared = async {
        while keys(&server).iter().any(|key| before.contains(key) && !key.ends_with(":meta")) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), cleared).await.unwrap();
    let after = keys(&server);
    assert!(after.len() > 10, "{after:?}");
    assert!(after.iter().all(|key| key.starts_with("{lockgate:faults}:")), "{after:?}");
}

fn keys(server: &Redis) -> Vec<String> {
    let answer = server.command("KEYS *").unwrap();
    answer.lines().filter(|line| !line.starts_with(['$', '*'])).map(str::to_owned).collect()
}

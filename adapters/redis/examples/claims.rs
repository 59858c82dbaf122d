//! How fast jobs pass through the lanes of a server of its own: offered, claimed, settled and released in batches of 1,000.
//!
//! ```sh
//! cargo run --release -p lockgate-redis --example claims
//! ```

use std::sync::Arc;

use lockgate_conformance::lanes::stage::{Spec, job, shapes, token};
use lockgate_core::job::Job;
use lockgate_core::pools::{DEFAULT_POOL, Pools};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Claim, ClaimRequest, LaneLayout, Lanes, Seat, Settlement};
use lockgate_redis::{Options, RedisLanes};
use lockgate_testbed::Redis;
use tokio::time::Instant;

const JOBS: usize = 50_000;
const BATCH: usize = 1_000;
const NO_LIMITS: &str = "topics: {'*': default}\npools: {default: {}}";
const LIMITED: &str = "topics: {'*': default}\npools: {default: {tenant_max_concurrent: 1000, max_concurrent: 100000}}";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let server = Redis::start().map_err(|error| format!("{error:#}"))?;
    println!(
        "{:<28}{:>10}{:>10}{:>10}{:>10}{:>10}{:>8}{:>12}",
        "jobs/s", "offer", "claim", "settle", "release", "all", "trips", "server µs"
    );
    for (name, tenants, yaml) in
        [("1 lane", 1, NO_LIMITS), ("100 tenants", 100, NO_LIMITS), ("100 tenants, 2 limits each", 100, LIMITED)]
    {
        let lanes = RedisLanes::connect(&Options::new(server.url(), format!("bench-{tenants}-{}", yaml.len()))).await?;
        let pools = Arc::new(Pools::load("pools.yaml", yaml).map_err(|errors| format!("{errors:?}"))?);
        lanes.adopt(LaneLayout { version: 1, pools }, Vec::new()).await;
        lanes.rebuild(Vec::new()).await;
        let busy = server_seconds(&server)?;
        run(name, &lanes, &jobs(tenants)).await;
        println!("{:>12.1}", (server_seconds(&server)? - busy) * 1e6 / JOBS as f64);
    }
    Ok(())
}

/// Processor time that the server used so far: unlike the rates, it says the same on a busy machine.
fn server_seconds(server: &Redis) -> std::io::Result<f64> {
    let info = server.command("INFO cpu")?;
    let of = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
    Ok(of("used_cpu_user:").unwrap_or(0.0) + of("used_cpu_sys:").unwrap_or(0.0))
}

fn jobs(tenants: usize) -> Vec<Arc<Job>> {
    let names: Vec<&'static str> = (0..tenants).map(|n| &*Box::leak(format!("tenant-{n}").into_boxed_str())).collect();
    let of = |n: usize| job(&Spec { tenant: names[n % tenants], ..Spec::default() }, i64::try_from(n).unwrap_or(0));
    (0..JOBS).map(|n| Arc::new(of(n))).collect()
}

/// A backlog is offered first, so that claims are measured beside one.
async fn run(name: &str, lanes: &RedisLanes, jobs: &[Arc<Job>]) {
    let trips = lanes.counters().round_trips;
    let offering = Instant::now();
    for batch in jobs.chunks(BATCH) {
        lanes.offer(batch.to_vec()).await;
    }
    let offered = offering.elapsed().as_secs_f64();
    let (mut claimed, mut settled, mut released, mut done) = (0.0, 0.0, 0.0, 0);
    loop {
        let begun = Instant::now();
        let claims = claim(lanes).await;
        claimed += begun.elapsed().as_secs_f64();
        if claims.is_empty() {
            break;
        }
        done += claims.len();
        let tokens: Vec<_> = claims.iter().map(|claim| token(claim.key.seq.0)).collect();
        let sent =
            |(claim, token): (Claim, &_)| Settlement::Sent { lane: claim.lane, key: claim.key, token: Clone::clone(token) };
        let begun = Instant::now();
        lanes.settle(claims.into_iter().zip(&tokens).map(sent).collect()).await;
        settled += begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        lanes.release(tokens).await;
        released += begun.elapsed().as_secs_f64();
    }
    assert_eq!(done, jobs.len(), "every job was claimed");
    let rate = |seconds: f64| format!("{:>10.0}", jobs.len() as f64 / seconds);
    let all = rate(offered + claimed + settled + released);
    let (offered, claimed, settled, released) = (rate(offered), rate(claimed), rate(settled), rate(released));
    print!("{name:<28}{offered}{claimed}{settled}{released}{all}{:>8}", lanes.counters().round_trips - trips);
}

async fn claim(lanes: &RedisLanes) -> Vec<Claim> {
    let seats = vec![Seat { shapes: shapes(&["echo"]), free: BATCH }];
    let (pool, serving, now) = (DEFAULT_POOL.into(), DEFAULT_POOL.into(), Timestamp::from_millis(10_000));
    lanes.claim(ClaimRequest { pool, serving, seats, limit: BATCH, now }).await.claims
}

//! The fixture of the cases: lanes, and a plain model of the Store behind them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lockgate_core::ids::{AttemptToken, JobSeq, PoolName};
use lockgate_core::job::{Env, Job, submit};
use lockgate_core::lane::{LaneKey, Priority, ReadyKey, Shape};
use lockgate_core::limits::Limits;
use lockgate_core::pools::{DEFAULT_POOL, Pools};
use lockgate_core::request::{JobRequest, Json};
use lockgate_core::retry::{Jitter, RetrySettings};
use lockgate_core::time::Timestamp;
use lockgate_core::verdict::{Decision, Judgement, Verdict};

use lockgate_ports::lanes::{
    Claim, ClaimRequest, Claimed, Demand, LaneDepth, LaneLayout, Lanes, LanesAway, Refill, RefillRequest, Seat, Settlement,
    TenantShare,
};

/// A job to be made.
#[derive(Clone, Debug)]
pub struct Spec {
    pub tenant: &'static str,
    pub topic: &'static str,
    pub priority: Priority,
    pub due_ms: i64,
    pub concurrency_key: Option<&'static str>,
    /// The constraints of the verdict.
    pub max_concurrent: Option<u32>,
}

impl Default for Spec {
    fn default() -> Self {
        Self {
            tenant: "acme",
            topic: "echo",
            priority: Priority::Default,
            due_ms: 1_000,
            concurrency_key: None,
            max_concurrent: None,
        }
    }
}

pub fn topic(topic: &'static str) -> Spec {
    Spec { topic, ..Spec::default() }
}

pub fn tenant(tenant: &'static str) -> Spec {
    Spec { tenant, ..Spec::default() }
}

pub fn priority(priority: Priority) -> Spec {
    Spec { priority, ..Spec::default() }
}

pub fn key(key: &'static str) -> Spec {
    Spec { concurrency_key: Some(key), ..Spec::default() }
}

pub struct Stage {
    pub lanes: Arc<dyn Lanes>,
    /// The time that claims pass.
    pub now_ms: i64,
    /// SCHEDULED rows, as the Store has them.
    rows: BTreeMap<LaneKey, BTreeMap<ReadyKey, Arc<Job>>>,
    seq: i64,
    layouts: AtomicU64,
}

impl Stage {
    pub fn new(lanes: Arc<dyn Lanes>) -> Self {
        Self { lanes, now_ms: 10_000, rows: BTreeMap::new(), seq: 0, layouts: AtomicU64::new(0) }
    }

    /// Commits a row without offering it.
    pub fn commit(&mut self, spec: &Spec) -> Arc<Job> {
        self.seq += 1;
        let job = Arc::new(job(spec, self.seq));
        self.rows.entry(job.lane()).or_default().insert(job.ready_key(), job.clone());
        job
    }

    pub async fn offer(&self, jobs: &[Arc<Job>]) {
        self.lanes.offer(jobs.to_vec()).await;
    }

    /// Commits and offers one job.
    pub async fn wait(&mut self, spec: &Spec) -> Arc<Job> {
        let job = self.commit(spec);
        self.offer(std::slice::from_ref(&job)).await;
        job
    }

    /// Commits and offers many jobs, oldest first.
    pub async fn wait_many(&mut self, count: usize, spec: &Spec) -> Vec<Arc<Job>> {
        let jobs: Vec<_> = (0..count).map(|_| self.commit(spec)).collect();
        self.offer(&jobs).await;
        jobs
    }

    /// Claims for one seat that fits the topics, refilling before.
    pub async fn claim(&self, topics: &[&'static str], free: usize) -> Vec<Claim> {
        self.refill().await;
        self.claim_for(&[(topics, free)]).await
    }

    pub async fn claim_for(&self, seats: &[(&[&'static str], usize)]) -> Vec<Claim> {
        self.claim_in(DEFAULT_POOL, DEFAULT_POOL, seats).await.claims
    }

    /// Claims what waits in one pool for seats of another.
    pub async fn claim_in(&self, pool: &str, serving: &str, seats: &[(&[&'static str], usize)]) -> Claimed {
        let seats = seats.iter().map(|(topics, free)| Seat { shapes: shapes(topics), free: *free }).collect();
        let now = Timestamp::from_millis(self.now_ms);
        let request = ClaimRequest { pool: pool.into(), serving: serving.into(), seats, limit: usize::MAX, now };
        self.lanes.claim(request).await
    }

    /// Claims one job and starts it. Its tenant, its sequence number and the token of its attempt.
    pub async fn start_one(&mut self, topics: &[&'static str]) -> Option<(String, i64, AttemptToken)> {
        let claim = self.claim(topics, 1).await.pop()?;
        let (tenant, seq) = (claim.lane.tenant.to_string(), claim.key.seq.0);
        Some((tenant, seq, self.start(claim).await))
    }

    /// Commits the claim and sends the job to its worker.
    pub async fn start(&mut self, claim: Claim) -> AttemptToken {
        self.remove(&claim.lane, claim.key);
        let token = token(claim.key.seq.0);
        let sent = Settlement::Sent { lane: claim.lane, key: claim.key, token: token.clone() };
        self.lanes.settle(vec![sent]).await;
        token
    }

    pub async fn release(&self, token: &AttemptToken) -> bool {
        self.lanes.release(vec![token.clone()]).await
    }

    /// Commits the claim; true if the row still existed. The job starts and ends at once.
    pub async fn dispatch(&mut self, claim: Claim) -> bool {
        let found = self.has(&claim.lane, claim.key);
        let token = self.start(claim).await;
        self.release(&token).await;
        found
    }

    /// Adopts these pools, and reads waiting jobs again.
    pub async fn adopt(&self, yaml: &str) -> Arc<Pools> {
        let pools = Arc::new(Pools::load("pools.yaml", yaml).unwrap_or_else(|errors| panic!("{errors:?}")));
        let version = self.layouts.fetch_add(1, Ordering::Relaxed) + 1;
        self.lanes.adopt(LaneLayout { version, pools: pools.clone() }, Vec::new()).await;
        self.lanes.rebuild(self.ready_lanes()).await;
        self.refill().await;
        pools
    }

    pub async fn demand(&self) -> Vec<Demand> {
        said(self.lanes.demand().await)
    }

    pub async fn holding(&self) -> Vec<AttemptToken> {
        said(self.lanes.holding().await)
    }

    pub async fn shares(&self, limit: usize) -> Vec<TenantShare> {
        said(self.lanes.shares(limit).await)
    }

    pub async fn taken(&self) -> Vec<(PoolName, u64)> {
        said(self.lanes.claimed_total().await)
    }

    pub async fn depths(&self, limit: usize) -> Vec<LaneDepth> {
        said(self.lanes.depths(limit).await)
    }

    /// Topics with claimable jobs, and how many of these are in memory.
    pub async fn demanded(&self) -> Vec<(String, usize)> {
        let mut demand: Vec<_> = self.demand().await.iter().map(of_topic).collect();
        demand.sort();
        demand
    }

    /// Claims and dispatches until a claim comes back empty. The jobs' sequence numbers in order.
    pub async fn drain(&mut self, topics: &[&'static str], free: usize) -> Vec<i64> {
        let mut drained = Vec::new();
        loop {
            let claims = self.claim(topics, free).await;
            if claims.is_empty() {
                return drained;
            }
            assert!(claims.len() <= free, "{} claims for {free} places", claims.len());
            for claim in claims {
                let seq = claim.key.seq.0;
                if self.dispatch(claim).await {
                    drained.push(seq);
                }
            }
        }
    }

    pub fn has(&self, lane: &LaneKey, key: ReadyKey) -> bool {
        self.rows.get(lane).is_some_and(|rows| rows.contains_key(&key))
    }

    /// Removes the row from the Store's SCHEDULED rows without telling the lanes. Returns whether it existed.
    pub fn remove(&mut self, lane: &LaneKey, key: ReadyKey) -> bool {
        self.rows.get_mut(lane).is_some_and(|rows| rows.remove(&key).is_some())
    }

    pub fn rows(&self) -> impl Iterator<Item = &Arc<Job>> {
        self.rows.values().flat_map(BTreeMap::values)
    }

    pub fn ready(&self, asked: &RefillRequest) -> Vec<Arc<Job>> {
        let rows = self.rows.get(&asked.lane).into_iter().flatten();
        rows.filter(|(key, _)| Some(**key) > asked.after).take(asked.limit).map(|(_, job)| job.clone()).collect()
    }

    pub fn ready_lanes(&self) -> Vec<(LaneKey, u64)> {
        let waiting = self.rows.iter().filter(|(_, rows)| !rows.is_empty());
        waiting.map(|(lane, rows)| (lane.clone(), rows.len() as u64)).collect()
    }

    /// Answers refill requests until there are none or no more jobs.
    pub async fn refill(&self) {
        for _ in 0..100 {
            let asks = self.lanes.refill_requests().await;
            let mut came = 0;
            for asked in asks {
                let jobs = self.ready(&asked);
                came += jobs.len();
                self.lanes.refill(Refill { asked, jobs }).await;
            }
            if came == 0 {
                return;
            }
        }
    }
}

pub fn shapes(topics: &[&'static str]) -> Arc<[Arc<Shape>]> {
    topics.iter().map(|topic| Arc::new(Shape::of(*topic))).collect()
}

fn of_topic(demand: &Demand) -> (String, usize) {
    (demand.shape.topic.to_string(), demand.waiting)
}

/// The token of the attempt that started the job with this number.
pub fn token(seq: i64) -> AttemptToken {
    AttemptToken::from(format!("token-{seq}"))
}

/// The settlement of a claim whose job does not wait any more.
pub fn gone(claim: &Claim) -> Settlement {
    Settlement::Gone { lane: claim.lane.clone(), key: claim.key, claim: Some(claim.number) }
}

/// The settlement of a claim that is undone.
pub fn returned(claim: &Claim, job: &Arc<Job>) -> Settlement {
    Settlement::Returned { lane: claim.lane.clone(), key: claim.key, claim: claim.number, job: job.clone() }
}

pub fn seqs(claims: &[Claim]) -> Vec<i64> {
    claims.iter().map(|claim| claim.key.seq.0).collect()
}

/// A SCHEDULED job as it looks after its commit.
pub fn job(spec: &Spec, seq: i64) -> Job {
    let decision = if spec.max_concurrent.is_some() { Decision::AllowWithConstraints } else { Decision::Allow };
    let verdict = Verdict::plain(decision, "all", "a test", "test".into())
        .but(|verdict| verdict.constraints.max_concurrent = spec.max_concurrent);
    let env = Env {
        now: Timestamp::from_millis(spec.due_ms),
        token: token(seq),
        jitter: Jitter::from_bits(0),
        limits: &Limits::default(),
        timeouts: Arc::default(),
        judgement: Judgement::Decided(Arc::new(verdict)),
    };
    let request = request(spec, seq);
    let hash = request.hash();
    let mut job = submit(Arc::new(request), hash, &env).job;
    job.seq = JobSeq(seq);
    job
}

fn request(spec: &Spec, seq: i64) -> JobRequest {
    JobRequest {
        job_id: format!("job-{seq}").into(),
        id_chosen: false,
        tenant: spec.tenant.into(),
        actor: "ann".into(),
        actor_type: None,
        actor_verified: false,
        topic: spec.topic.into(),
        payload: Json::null(),
        priority: Some(spec.priority),
        labels: BTreeMap::new(),
        env: BTreeMap::new(),
        idempotency_key: None,
        concurrency_key: spec.concurrency_key.map(Into::into),
        max_attempts: None,
        retry: RetrySettings::default(),
        timeout_ms: None,
        not_before: None,
        deadline_ms: None,
        requires: BTreeSet::new(),
        capability: None,
        risk_tags: BTreeSet::new(),
        trace_id: None,
        parent: None,
        workflow_id: None,
        compensation: None,
        child_of: None,
        run: None,
        gate: None,
        memo: None,
    }
}

/// The lanes are reachable in every case.
fn said<T>(answer: Result<T, LanesAway>) -> T {
    answer.unwrap_or_else(|away| panic!("{away}"))
}

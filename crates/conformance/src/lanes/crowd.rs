//! Random interleavings against a plain model of limits: counts by key, recomputed from everything each time.
//!
//! Two properties are checked: a claimed job had room in every limit; and when claims have taken all they can, every job
//! that still waits has a limit without room, so none is stuck.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::lane::{LaneKey, Priority, ReadyKey};
use lockgate_core::pools::{Limit, Pools};

use super::random::Dice;
use super::stage::{Spec, Stage, gone, returned};
use lockgate_ports::lanes::{Claim, Lanes, Settlement};

const TOPICS: [&str; 2] = ["echo", "noop"];
const TENANTS: [&str; 3] = ["a", "b", "c"];
const KEYS: [Option<&str>; 3] = [None, Some("k1"), Some("k2")];
/// Where jobs wait and where they are served.
const WAYS: [(&str, &str); 3] = [("left", "left"), ("left", "right"), ("right", "right")];
const EVERYTHING: usize = 50;

const WIDE: &str = "
topics: {echo: [left, right], noop: right}
pools: {left: {tenant_max_concurrent: 3}, right: {max_concurrent: 4}}
limits:
  - {name: all, max_concurrent: 6}
  - {name: keys, per: [key], max_concurrent: 1}
  - {name: pace, topics: [noop], per: [tenant], rate: 3/s}";

const NARROW: &str = "
topics: {echo: [left, right], noop: right}
pools: {left: {}, right: {max_concurrent: 2}}
limits:
  - {name: all, max_concurrent: 3}
  - {name: keys, per: [topic, key], max_concurrent: 2}
  - {name: pace, topics: [noop], per: [tenant], rate: 3/s}";

/// Panics when a limit is exceeded, or when something could be claimed and is not.
pub fn keeps_limits(lanes: Arc<dyn Lanes>, words: &[u64]) {
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(play(lanes, words)),
        Err(error) => panic!("no runtime: {error}"),
    }
}

async fn play(lanes: Arc<dyn Lanes>, words: &[u64]) {
    let stage = Stage::new(lanes);
    let pools = stage.adopt(WIDE).await;
    let mut crowd = Crowd { stage, pools, claimed: BTreeMap::new(), running: BTreeMap::new(), paces: BTreeMap::new() };
    for word in words {
        crowd.step(Dice(*word)).await;
        assert_eq!(crowd.stage.holding().await, crowd.running.keys().cloned().collect::<Vec<_>>());
    }
    crowd.finish().await;
}

struct Crowd {
    stage: Stage,
    pools: Arc<Pools>,
    claimed: BTreeMap<(LaneKey, ReadyKey), (Claim, PoolName)>,
    running: BTreeMap<AttemptToken, (LaneKey, PoolName)>,
    /// Of each rate: thousandths of a start that are left, and when that was so.
    paces: BTreeMap<Arc<str>, (i64, i64)>,
}

impl Crowd {
    async fn step(&mut self, mut dice: Dice) {
        match dice.roll(14) {
            0..=3 => self.wait(&mut dice).await,
            4..=6 => self.claim(&mut dice).await,
            7 | 8 => self.settle(&mut dice).await,
            9 | 10 => self.release(&mut dice).await,
            11 => self.stage.now_ms += i64::try_from(dice.roll(400)).unwrap_or(0),
            12 => {
                self.take_all().await;
            }
            _ if dice.roll(4) == 0 => self.adopt(&mut dice).await,
            _ => self.cancel(&mut dice).await,
        }
    }

    async fn wait(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(4) {
            let spec = Spec {
                tenant: TENANTS[dice.roll(3)],
                topic: TOPICS[dice.roll(2)],
                priority: Priority::ALL[dice.roll(2)],
                concurrency_key: KEYS[dice.roll(3)],
                max_concurrent: (dice.roll(4) == 0).then_some(1),
                due_ms: 1_000 + i64::try_from(dice.roll(16)).unwrap_or(0),
            };
            self.stage.wait(&spec).await;
        }
    }

    async fn claim(&mut self, dice: &mut Dice) {
        let (pool, serving) = WAYS[dice.roll(3)];
        let topics = [&TOPICS[..1], &TOPICS[1..], &TOPICS[..]][dice.roll(3)];
        let free = dice.roll(4);
        self.claim_in(pool, serving, &[(topics, free), (topics, 1)]).await;
    }

    async fn claim_in(&mut self, pool: &str, serving: &str, seats: &[(&[&'static str], usize)]) -> usize {
        let claims = self.stage.claim_in(pool, serving, seats).await.claims;
        let count = claims.len();
        for claim in claims {
            let full = self.full(&claim.lane, Some(&serving.into()));
            assert_eq!(full, None, "claimed all the same: {claim:?}");
            for limit in self.pools.limits(&claim.lane).iter().filter(|limit| limit.rate.is_some()) {
                let left = self.left(limit);
                self.paces.insert(limit.key.clone(), (left - 1_000, self.stage.now_ms));
            }
            self.claimed.insert((claim.lane.clone(), claim.key), (claim, serving.into()));
        }
        count
    }

    async fn settle(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(self.claimed.len());
            let Some((lane, key)) = self.claimed.keys().nth(at).cloned() else { return };
            if dice.roll(3) == 0 { self.give_back(&lane, key).await } else { self.start(&lane, key).await }
        }
    }

    async fn start(&mut self, lane: &LaneKey, key: ReadyKey) {
        if let Some((claim, pool)) = self.claimed.remove(&(lane.clone(), key)) {
            let token = self.stage.start(claim).await;
            self.running.insert(token, (lane.clone(), pool));
        }
    }

    async fn give_back(&mut self, lane: &LaneKey, key: ReadyKey) {
        let Some(claim) = self.claimed.get(&(lane.clone(), key)).map(|(claim, _)| claim.clone()) else { return };
        self.forget(lane, key);
        let job = self.stage.rows().find(|job| job.ready_key() == key && job.lane() == *lane).cloned();
        let settlement = match job {
            Some(job) => returned(&claim, &job),
            None => gone(&claim),
        };
        self.stage.lanes.settle(vec![settlement]).await;
    }

    /// The claim is undone: its rates are as before.
    fn forget(&mut self, lane: &LaneKey, key: ReadyKey) {
        if self.claimed.remove(&(lane.clone(), key)).is_some() {
            for limit in self.pools.limits(lane).iter().filter(|limit| limit.rate.is_some()) {
                let left = (self.left(limit) + 1_000).min(3_000);
                self.paces.insert(limit.key.clone(), (left, self.stage.now_ms));
            }
        }
    }

    async fn release(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(3) {
            let at = dice.roll(self.running.len());
            let Some(token) = self.running.keys().nth(at).cloned() else { return };
            self.running.remove(&token);
            self.stage.release(&token).await;
        }
    }

    /// A waiting or claimed job ends for another reason, such as a cancel.
    async fn cancel(&mut self, dice: &mut Dice) {
        let at = dice.roll(self.stage.rows().count());
        let Some((lane, key)) = self.stage.rows().nth(at).map(|job| (job.lane(), job.ready_key())) else { return };
        self.stage.remove(&lane, key);
        self.forget(&lane, key);
        self.stage.lanes.settle(vec![Settlement::Gone { lane, key, claim: None }]).await;
    }

    /// Some claims are undone before; the others are committed before and reported as sent after.
    async fn adopt(&mut self, dice: &mut Dice) {
        let mut committed = Vec::new();
        for (lane, key) in self.claimed.keys().cloned().collect::<Vec<_>>() {
            if dice.roll(2) == 0 {
                self.give_back(&lane, key).await;
            } else {
                self.stage.remove(&lane, key);
                committed.push((lane, key));
            }
        }
        self.pools = self.stage.adopt([WIDE, NARROW][dice.roll(2)]).await;
        for (lane, key) in committed {
            self.start(&lane, key).await;
        }
    }

    /// Claims until no job comes. A job that waits then must have a reason.
    async fn take_all(&mut self) -> usize {
        let mut taken = 0;
        loop {
            self.stage.refill().await;
            let mut came = 0;
            for (pool, serving) in WAYS {
                came += self.claim_in(pool, serving, &[(&TOPICS, EVERYTHING)]).await;
            }
            taken += came;
            if came == 0 {
                break;
            }
        }
        let waiting = self.stage.rows().filter(|job| !self.claimed.contains_key(&(job.lane(), job.ready_key())));
        for job in waiting {
            let serving = (job.request.topic.as_str() == "noop").then(|| "right".into());
            assert_ne!(self.full(&job.lane(), serving.as_ref()), None, "not claimed: {:?}", job.lane());
        }
        for demand in self.stage.demand().await {
            let mut lanes = self.stage.rows().map(|job| job.lane()).filter(|lane| lane.shape.topic == demand.shape.topic);
            assert!(lanes.any(|lane| self.full(&lane, None).is_none()), "nobody could take {demand:?}");
        }
        taken
    }

    /// The first limit of a lane that has no room, or the pool it would run in.
    fn full(&self, lane: &LaneKey, serving: Option<&PoolName>) -> Option<Arc<str>> {
        let held = || self.claimed.iter().map(|((lane, _), (_, pool))| (lane, pool));
        let running = || self.running.values().map(|(lane, pool)| (lane, pool));
        let used = |key: &str| {
            let passes = |lane: &LaneKey| self.pools.limits(lane).iter().any(|limit| *limit.key == *key);
            held().chain(running()).filter(|(lane, _)| passes(lane)).count()
        };
        let is_full = |limit: &Limit| {
            limit.max.is_some_and(|max| used(&limit.key) >= max as usize)
                || (limit.rate.is_some() && self.left(limit) < 1_000)
        };
        if let Some(limit) = self.pools.limits(lane).into_iter().find(is_full) {
            return Some(limit.key);
        }
        let pool = serving.and_then(|pool| self.pools.pool(pool))?;
        let inside = held().chain(running()).filter(|(_, in_pool)| **in_pool == pool.name).count();
        pool.max_concurrent.filter(|max| inside >= *max as usize).map(|_| pool.name.as_str().into())
    }

    /// Thousandths of a start that a rate of three in a second has left now.
    fn left(&self, limit: &Limit) -> i64 {
        let (left, since) = self.paces.get(&limit.key).copied().unwrap_or((3_000, self.stage.now_ms));
        (left + 3 * (self.stage.now_ms - since)).min(3_000)
    }

    async fn finish(mut self) {
        while self.stage.rows().next().is_some() || !self.running.is_empty() {
            self.stage.now_ms += 1_000;
            let taken = self.take_all().await;
            assert!(taken + self.claimed.len() + self.running.len() > 0, "stuck");
            for (lane, key) in self.claimed.keys().cloned().collect::<Vec<_>>() {
                self.start(&lane, key).await;
            }
            let tokens: Vec<_> = std::mem::take(&mut self.running).into_keys().collect();
            self.stage.lanes.release(tokens).await;
        }
        assert_eq!(self.stage.demand().await, []);
        assert_eq!(self.stage.holding().await, []);
    }
}

//! Placement in the plainest words: every question walks everything. Shares no check with what it judges.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::ids::PoolName;
use crate::lane::Shape;
use crate::placement::{Candidate, Unavailable};
use crate::pools::{Closed, DispatchMode, Pool, Routing};

#[derive(Clone)]
pub(super) struct Model {
    pub(super) routing: Arc<Routing>,
    /// With when each was last given a job.
    pub(super) workers: BTreeMap<u32, (Candidate, u64)>,
    pub(super) given: u64,
}

impl Model {
    /// The route's pools that may be used now, and whether a pause cut the rest off.
    fn open(&self, shape: &Shape) -> Option<(Vec<&Pool>, bool)> {
        let route = self.routing.pools.route(shape).ok()?;
        let mut open = Vec::new();
        for name in route.pools() {
            match self.routing.closed(name) {
                Some(Closed::Paused) => return Some((open, true)),
                Some(Closed::Draining) => {}
                None => open.push(self.routing.pools.pool(name)?),
            }
        }
        Some((open, false))
    }

    fn reasons(&self, shape: &Shape, pools: &[&Pool]) -> Vec<(u32, Option<String>)> {
        let mut reasons = Vec::new();
        for pool in pools {
            for (key, (worker, _)) in self.workers.iter().filter(|(_, (worker, _))| worker.profile.pool == pool.name) {
                reasons.push((*key, lasting(worker, pool, shape).or_else(|| passing(worker, pool))));
            }
        }
        reasons
    }

    /// The reason of every worker of the open pools, for comparison with what is shown to people.
    pub(super) fn shown(&self, shape: &Shape) -> Vec<Option<String>> {
        let Some((open, _)) = self.open(shape) else { return Vec::new() };
        let mut reasons: Vec<_> = self.reasons(shape, &open).into_iter().map(|(_, reason)| reason).collect();
        reasons.sort();
        reasons
    }

    pub(super) fn plan(&self, shape: &Shape, serving: &PoolName, want: usize) -> BTreeMap<u32, u32> {
        let mut model = self.clone();
        let mut places = BTreeMap::new();
        let Some((open, _)) = self.open(shape) else { return places };
        let Some(serving) = open.iter().find(|pool| pool.name == *serving) else { return places };
        let is_preferred = |worker: &Candidate| shape.preferred_worker.as_ref() == Some(&worker.profile.worker);
        for at in 0..want {
            let mut preferred = model.healthy(shape, &open);
            preferred.retain(|key| is_preferred(&self.workers[key].0));
            // Of two sessions of one name the first is filled before the second is begun.
            let begun = |key: &u32| self.workers[key].clone();
            let chosen = if preferred.is_empty() {
                model.next(shape, serving)
            } else {
                preferred.into_iter().min_by(|a, b| order(*a, &begun(a), *b, &begun(b)))
            };
            let Some(key) = chosen else { break };
            *places.entry(key).or_default() += 1;
            model.workers.entry(key).and_modify(|(worker, given)| {
                worker.active += 1;
                *given = self.given + at as u64 + 1;
            });
        }
        places
    }

    /// Those who could take a job and are over no limit, whichever process gives it to them.
    fn healthy(&self, shape: &Shape, pools: &[&Pool]) -> Vec<u32> {
        let mut healthy = Vec::new();
        for pool in pools {
            for (key, (worker, _)) in self.workers.iter().filter(|(_, (worker, _))| worker.profile.pool == pool.name) {
                let reached =
                    Candidate { away: worker.away.filter(|away| *away != Unavailable::Elsewhere), ..worker.clone() };
                let able = lasting(worker, pool, shape).is_none() && passing(&reached, pool).is_none();
                if able && over(worker, pool).is_none() {
                    healthy.push(*key);
                }
            }
        }
        healthy
    }

    /// Who takes the next job in a pool, if no worker is preferred.
    fn next(&self, shape: &Shape, pool: &Pool) -> Option<u32> {
        let least = |keys: Vec<u32>| keys.into_iter().min_by(|a, b| order(*a, &self.workers[a], *b, &self.workers[b]));
        let healthy = self.healthy(shape, &[pool]);
        if pool.dispatch == DispatchMode::Direct {
            return least(healthy);
        }
        let (own, others): (Vec<u32>, _) = healthy.into_iter().partition(|key| self.workers[key].0.away.is_none());
        let reasons = self.reasons(shape, &[pool]);
        let ready = reasons.into_iter().filter(|(_, reason)| reason.is_none()).map(|(key, _)| key);
        let last: Vec<u32> = ready.filter(|key| over(&self.workers[key].0, pool).is_some()).collect();
        let others = if last.is_empty() { Vec::new() } else { others };
        least(own).or_else(|| least(others)).or_else(|| least(last))
    }

    /// Free slots of everybody that fits, whichever process gives it jobs.
    pub(super) fn free(&self, shape: &Shape) -> u64 {
        let Some((open, _)) = self.open(shape) else { return 0 };
        let mut free = 0;
        for pool in open {
            let fits = |worker: &Candidate| worker.profile.pool == pool.name && lasting(worker, pool, shape).is_none();
            for (worker, _) in self.workers.values().filter(|(worker, _)| fits(worker)) {
                let away = worker.away.filter(|away| !matches!(away, Unavailable::Elsewhere | Unavailable::Unheard));
                let mut given = Candidate { away, ..worker.clone() };
                while passing(&given, pool).is_none() {
                    free += 1;
                    given.active += 1;
                }
            }
        }
        free
    }

    pub(super) fn refusal(&self, shape: &Shape) -> Option<String> {
        if let Err(unrouted) = self.routing.pools.route(shape) {
            return Some(unrouted.to_string());
        }
        let (open, paused) = self.open(shape)?;
        let reasons = self.reasons(shape, &open);
        let some =
            |start: &str| reasons.iter().any(|(_, reason)| reason.as_ref().is_some_and(|reason| reason.starts_with(start)));
        if reasons.iter().any(|(_, reason)| reason.is_none()) {
            return None;
        }
        let code = match () {
            () if some("busy") || some("elsewhere") => "workers_busy",
            () if some("overloaded") => "pool_overloaded",
            () if some("detached") || some("draining") => "workers_away",
            () if paused => "pool_paused",
            () if open.is_empty() => "pool_draining",
            () => "no_workers",
        };
        Some(code.into())
    }

    pub(super) fn hopeless(&self, shape: &Shape) -> Option<String> {
        let refusal = self.refusal(shape);
        let Some((open, _)) = self.open(shape) else { return refusal };
        let direct = open.iter().all(|pool| pool.dispatch == DispatchMode::Direct);
        refusal.filter(|refusal| direct && refusal == "no_workers")
    }
}

fn order(a: u32, (x, x_given): &(Candidate, u64), b: u32, (y, y_given): &(Candidate, u64)) -> std::cmp::Ordering {
    let score = |w: &Candidate| 100 * u64::from(w.active) + u64::from(w.load.cpu.unwrap_or(0) + w.load.gpu.unwrap_or(0));
    let share = |w: &Candidate| f64::from(w.active) / f64::from(w.capacity);
    let here = x.away.cmp(&y.away);
    (score(x).cmp(&score(y))).then(share(x).total_cmp(&share(y))).then(here).then(x_given.cmp(y_given)).then(a.cmp(&b))
}

fn lasting(worker: &Candidate, pool: &Pool, shape: &Shape) -> Option<String> {
    let profile = &worker.profile;
    let serves = |pattern: &str| match pattern.split_once('*') {
        Some((start, _)) => shape.topic.as_str().starts_with(start),
        None => shape.topic.as_str() == pattern,
    };
    if !profile.topics.iter().any(|pattern| serves(pattern)) {
        return Some("topic_not_served".into());
    }
    let able: Vec<&str> = profile.capabilities.iter().chain(&pool.capabilities).map(|name| &**name).collect();
    if let Some(name) = shape.requires.iter().find(|name| !able.contains(&&***name)) {
        return Some(format!("missing_capability:{name}"));
    }
    for (label, value) in &shape.placement {
        let (kind, bare) = label.split_once('.').unwrap();
        let candidates =
            [profile.labels.get(label), profile.labels.get(bare), pool.labels.get(label), pool.labels.get(bare)];
        let same = candidates.into_iter().flatten().next() == Some(value);
        let capable = kind == "constraint" && &**value == "true" && able.contains(&bare);
        if !same && !capable {
            return Some(format!("placement_mismatch:{label}"));
        }
    }
    None
}

fn passing(worker: &Candidate, pool: &Pool) -> Option<String> {
    match worker.away {
        Some(Unavailable::Detached) => return Some("detached".into()),
        Some(Unavailable::Draining) => return Some("draining".into()),
        Some(Unavailable::Elsewhere | Unavailable::Unheard) | None => {}
    }
    let over = over(worker, pool).filter(|_| pool.dispatch == DispatchMode::Direct);
    let loaded = over.or_else(|| (worker.active >= worker.capacity).then(|| "busy".into()));
    loaded.or_else(|| worker.away.map(|_| "elsewhere".into()))
}

fn over(worker: &Candidate, pool: &Pool) -> Option<String> {
    let full = |percent: u32| worker.active * 100 >= worker.capacity * percent;
    let above = |measured: Option<u32>, percent: Option<u32>| percent.is_some() && measured >= percent;
    if pool.overload.active_percent.is_some_and(full) {
        Some("overloaded:active".into())
    } else if above(worker.load.cpu, pool.overload.cpu_percent) {
        Some("overloaded:cpu".into())
    } else if above(worker.load.gpu, pool.overload.gpu_percent) {
        Some("overloaded:gpu".into())
    } else {
        None
    }
}

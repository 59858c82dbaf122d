//! One sentence that tells a person which change would start a waiting job.

use super::candidate::{Unavailable, Unready};
use super::explain::{Placement, PoolLook, Refusal, WorkerLook};
use crate::lane::Shape;
use crate::pools::Unrouted;
use crate::worker::Unfit;

impl Placement {
    /// The smallest change that would start a job of the shape.
    pub fn smallest_change(&self, shape: &Shape) -> String {
        match &self.refusal {
            None => "Nothing: a worker is free and takes it when its turn comes.".into(),
            Some(Refusal::Unrouted(unrouted)) => map_it(unrouted, shape),
            Some(Refusal::PoolPaused | Refusal::BehindPaused) => self.resume(&Refusal::PoolPaused, shape),
            Some(Refusal::PoolDraining) => self.resume(&Refusal::PoolDraining, shape),
            Some(Refusal::NoWorkers) => self.fit_one(shape),
            Some(Refusal::WorkersAway) => self.bring_back(shape),
            Some(Refusal::PoolOverloaded) => self.relieve(shape),
            Some(Refusal::WorkersBusy) => self.wait(shape),
        }
    }

    fn wait(&self, shape: &Shape) -> String {
        let Some((pool, _)) = self.nearest() else { return self.start_one(shape) };
        let wait = "Wait for a free place: every worker that fits is busy.";
        format!("{wait} More slots or workers in pool {} start it sooner.", pool.pool)
    }

    fn resume(&self, reason: &Refusal, shape: &Shape) -> String {
        match self.pools.iter().find(|look| look.reason.as_ref() == Some(reason)) {
            Some(PoolLook { pool, .. }) => format!("Resume pool {pool}: `lockgate pools resume {pool}`."),
            None => self.start_one(shape),
        }
    }

    /// Either one addition to an existing worker, or a new worker that has everything.
    fn fit_one(&self, shape: &Shape) -> String {
        let staying = |(_, worker): &(&PoolLook, &WorkerLook)| !matches!(worker.unready, Some(Unready::Away(_)));
        let Some((pool, worker)) = self.nearest().filter(staying) else { return self.start_one(shape) };
        let (pool, name) = (&pool.pool, &worker.worker);
        match worker.lacks.as_slice() {
            [Unfit::Topic] => format!("Let worker {name} of pool {pool} serve {}.", shape.topic),
            [Unfit::Capability(capability)] => format!("Add the capability {capability} to worker {name} of pool {pool}."),
            [Unfit::Placement(label)] => {
                let value = shape.placement.get(label).map_or("", |value| value);
                format!("Give worker {name} of pool {pool} the label {label}={value}.")
            }
            _ => self.start_one(shape),
        }
    }

    fn bring_back(&self, shape: &Shape) -> String {
        match self.nearest() {
            Some((pool, WorkerLook { worker, unready: Some(Unready::Away(Unavailable::Detached)), .. })) => {
                format!("Bring worker {worker} of pool {} back: its connection is down.", pool.pool)
            }
            _ => self.start_one(shape),
        }
    }

    fn relieve(&self, shape: &Shape) -> String {
        let Some((pool, worker)) = self.nearest() else { return self.start_one(shape) };
        let reason = worker.unready.map(|unready| unready.to_string()).unwrap_or_default();
        let (pool, name) = (&pool.pool, &worker.worker);
        format!(
            "Wait until worker {name} of pool {pool} is below its overload limit ({reason}), or start another one there."
        )
    }

    fn start_one(&self, shape: &Shape) -> String {
        let pool = self.open().next().map(|look| format!(" in pool {}", look.pool)).unwrap_or_default();
        let mut needs = vec![format!("serves {}", shape.topic)];
        needs.extend(shape.requires.iter().map(|capability| format!("has the capability {capability}")));
        needs.extend(shape.placement.iter().map(|(label, value)| format!("has the label {label}={value}")));
        format!("Start a worker{pool} that {}.", needs.join(" and "))
    }

    fn open(&self) -> impl Iterator<Item = &PoolLook> {
        let closed = |look: &&PoolLook| {
            matches!(look.reason, Some(Refusal::PoolPaused | Refusal::PoolDraining | Refusal::BehindPaused))
        };
        self.pools.iter().filter(move |look| !closed(look))
    }

    /// The worker that lacks least: a change to any other one would be larger.
    fn nearest(&self) -> Option<(&PoolLook, &WorkerLook)> {
        let workers = self.open().flat_map(|look| look.workers.iter().map(move |worker| (look, worker)));
        workers.min_by_key(|(_, worker)| (worker.lacks.len(), worker.unready))
    }
}

fn map_it(unrouted: &Unrouted, shape: &Shape) -> String {
    let topic = &shape.topic;
    match unrouted {
        Unrouted::NoMapping => format!("Map {topic} to a pool in pools.yaml."),
        Unrouted::PreferredPool => {
            let pool = shape.preferred_pool.as_ref().map_or("it prefers", |pool| pool.as_str());
            format!("Add pool {pool} to the pools of {topic} in pools.yaml, or submit the job without preferred_pool.")
        }
        Unrouted::AllowedPools => {
            let allowed: Vec<&str> = shape.allowed_pools.iter().flatten().map(|pool| &**pool).collect();
            let allowed = allowed.join(", ");
            format!("Policy allows only these pools: {allowed}. Map {topic} to one of them in pools.yaml, or allow another.")
        }
    }
}

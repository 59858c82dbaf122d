//! Fails jobs that no worker can ever take as things are: no pool for the topic, or no fitting worker in a pool whose workers
//! are chosen by the scheduler. Everything else waits for as long as its deadline allows.
//!
//! All jobs of one shape are in the same position, so the tries are counted by shape and from time, not written into every
//! row: a job has been tried as often as its wait has steps of the ladder. How many tries a shape had is kept in the Store
//! whenever it grows. A process that starts goes on from there: the time in which no process ran is no try, and the next try
//! is a step of the ladder away, in which workers can attach.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::{Input, Job, Reason};
use lockgate_core::lane::{LaneKey, Shape};
use lockgate_core::limits::Limits;
use lockgate_core::placement::Refusal;
use lockgate_core::pools::RoutingId;
use lockgate_core::retry::{PlacingLadder, PlacingTries};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

/// Shapes that no worker can take, since when, and why.
#[derive(Default)]
pub(crate) struct Hopeless(Mutex<Looked>);

/// What the latest look saw.
#[derive(Default)]
struct Looked {
    routing: RoutingId,
    shapes: Shapes,
    /// The text that the Store has, once it was read.
    kept: Option<Arc<str>>,
    /// What it says of shapes that were not seen since, and when it was read. Lanes and configuration may take a moment after a
    /// start.
    resumed: BTreeMap<Arc<Shape>, PlacementTries>,
    resumed_at: Timestamp,
}

/// The tries of one shape, as they are kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct PlacementTries {
    shape: Arc<Shape>,
    /// A reason code. Another reason is a new chance, and so is another routing.
    reason: String,
    pools: Arc<str>,
    states: Arc<str>,
    tries: u32,
}

/// What is not seen to be hopeless for this long after a start has a new chance.
const RESUMED_FOR: Duration = Duration::from_secs(60);

/// More shapes than this are not kept: their tries begin anew with a restart.
const KEPT_MAX: usize = 10_000;

type Shapes = BTreeMap<Arc<Shape>, (Timestamp, Refusal)>;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.placing_once(&stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("placing");
            tracing::warn!(%error, "unplaceable jobs could not be failed; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn placing_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        self.resume_tries().await?;
        let now = self.ports.clock.now();
        // Before the look: a configuration that comes in between is a new chance.
        let routing = self.routing().id().clone();
        // What cannot be seen is not gone: it has been hopeless for as long as before.
        let Ok(waiting) = self.ports.lanes.demand().await else { return Ok(()) };
        let hopeless = waiting
            .iter()
            .filter_map(|demand| Some((demand.shape.clone(), self.edge.ask(|edge, _| edge.hopeless(&demand.shape))?)));
        let given_up = self.hopeless.look(hopeless.collect(), &routing, now, &self.settings.limits);
        self.keep_tries(now).await?;
        if given_up.is_empty() {
            return Ok(());
        }
        let every = self.settings.expire_every;
        let Some(mut round) = Round::begin(&self.leadership, stop, Lead::Placing, every).await? else { return Ok(()) };
        let Ok(depths) = self.ports.lanes.depths(usize::MAX).await else { return Ok(()) };
        let mut placed = Ok(());
        for depth in depths {
            let Some((since, refusal)) = given_up.get(&**depth.lane.shape.fit()) else { continue };
            let span = ladder(&depth.lane.shape.fit(), &self.settings.limits).span();
            if depth.oldest.is_some_and(|oldest| oldest.due_at > now - span) {
                continue;
            }
            if !round.goes_on().await? {
                break;
            }
            match self.give_up(&mut round, &depth.lane, (*since, refusal), &routing, now - span).await {
                // A Store that is away is not asked about every lane.
                Err(error) if !error.is_damage() => return Err(error),
                done => placed = placed.and(done),
            }
        }
        placed
    }

    /// Reads once what the processes before this one counted.
    async fn resume_tries(&self) -> Result<(), StoreError> {
        if !self.hopeless.is_resumed() {
            let kept = self.ports.store.kept_tries().await?;
            self.hopeless.resume(kept.unwrap_or_else(|| "[]".into()), self.ports.clock.now());
        }
        Ok(())
    }

    /// Keeps the tries of all shapes if there are more, or fewer shapes, than are kept. One process does it for all.
    async fn keep_tries(&self, now: Timestamp) -> Result<(), StoreError> {
        let Some(text) = self.hopeless.unkept(now, &self.settings.limits) else { return Ok(()) };
        if self.leadership.leads(Lead::Placing, self.settings.expire_every).await? {
            self.ports.store.keep_tries(&text).await?;
            self.hopeless.was_kept(text);
        }
        Ok(())
    }

    /// Ends the jobs of one lane that waited since before `before`, oldest first.
    async fn give_up(
        &self,
        round: &mut Round<'_>,
        lane: &LaneKey,
        (since, refusal): (Timestamp, &Refusal),
        routing: &RoutingId,
        before: Timestamp,
    ) -> Result<(), StoreError> {
        let reason = match refusal {
            Refusal::Unrouted(_) => Reason::NoPoolMapping,
            _ => Reason::NoWorkers,
        };
        let change = self.edge.look(|edge| edge.explain(&lane.shape)).smallest_change(&lane.shape);
        let tries = self.settings.limits.placing_tries_max;
        let message: Arc<str> = format!("nobody could take it in {tries} tries ({refusal}). {change}").into();
        let mut after = None;
        while round.goes_on().await? {
            let page = self.ports.store.ready(lane, after, self.settings.batch_max).await?;
            after = page.last().map(Job::ready_key);
            let full = page.len() == self.settings.batch_max;
            let old: Vec<Arc<Job>> =
                page.into_iter().filter(|job| job.life.due_at.max(since) <= before).map(Arc::new).collect();
            let last = !full || old.is_empty();
            let input = |job: Arc<Job>| (job, Input::GivenUp { reason, message: message.clone(), routing: routing.clone() });
            let driven = self.drive(old.into_iter().map(input).collect()).await?;
            // Conflicts mean that the configuration changed meanwhile: there is a new chance.
            let conflicts = driven.iter().any(|one| one.as_ref().is_err_and(|undriven| !undriven.is_refused()));
            if last || conflicts {
                break;
            }
        }
        Ok(())
    }

    /// How often placing this job was tried, if no worker can ever take it.
    pub(crate) fn placing_tries(&self, job: &Job, shape: &Arc<Shape>) -> Option<PlacingTries> {
        let since = self.hopeless.since(&shape.fit())?.max(job.life.due_at);
        Some(ladder(&shape.fit(), &self.settings.limits).tries(self.ports.clock.now().since(since)))
    }
}

impl Hopeless {
    /// Takes what is hopeless now. What has been so until all tries were used up, for the same reason and under the same
    /// routing: a change of either is a new chance.
    fn look(
        &self,
        now_hopeless: Vec<(Arc<Shape>, Refusal)>,
        routing: &RoutingId,
        now: Timestamp,
        limits: &Limits,
    ) -> Shapes {
        let mut looked = self.0.lock();
        if now.since(looked.resumed_at) > RESUMED_FOR {
            looked.resumed.clear();
        }
        let Looked { routing: under, shapes: known, resumed, .. } = &mut *looked;
        let mut before = std::mem::take(known);
        if under != routing {
            before.clear();
            *under = routing.clone();
        }
        for (shape, refusal) in now_hopeless {
            let same = before.get(&shape).filter(|(_, earlier)| *earlier == refusal);
            let kept = resumed.remove(&shape).filter(|kept| kept.is_of(routing, &refusal));
            // The last step is always still to come, so that workers can attach before anything is given up after a restart.
            let made = |kept: u32| kept.min(limits.placing_tries_max.saturating_sub(1));
            let resumed = kept.map(|kept| now - ladder(&shape, limits).wait(made(kept.tries)));
            let since = same.map(|(since, _)| *since).or(resumed).unwrap_or(now);
            known.insert(shape, (since, refusal));
        }
        known
            .iter()
            .filter(|(shape, (since, _))| *since + ladder(shape, limits).span() <= now)
            .map(|(shape, known)| (shape.clone(), known.clone()))
            .collect()
    }

    fn since(&self, shape: &Shape) -> Option<Timestamp> {
        self.0.lock().shapes.get(shape).map(|(since, _)| *since)
    }

    fn is_resumed(&self) -> bool {
        self.0.lock().kept.is_some()
    }

    fn resume(&self, text: Arc<str>, now: Timestamp) {
        let kept: Vec<PlacementTries> = serde_json::from_str(&text).unwrap_or_else(|error| {
            tracing::warn!(%error, "stored placement tries cannot be read; they are counted from zero");
            Vec::new()
        });
        let mut looked = self.0.lock();
        looked.resumed = kept.into_iter().map(|kept| (kept.shape.clone(), kept)).collect();
        looked.resumed_at = now;
        looked.kept = Some(text);
    }

    /// What should be kept, if it is not what is kept.
    fn unkept(&self, now: Timestamp, limits: &Limits) -> Option<Arc<str>> {
        let looked = self.0.lock();
        let kept = |(shape, (since, refusal)): (&Arc<Shape>, &(Timestamp, Refusal))| PlacementTries {
            shape: shape.clone(),
            reason: refusal.to_string(),
            pools: looked.routing.pools.clone(),
            states: looked.routing.states.clone(),
            tries: ladder(shape, limits).tries(now.since(*since)).made,
        };
        let mut tried = looked.resumed.clone();
        let seen = looked.shapes.iter().map(kept).filter(|kept| kept.tries > 0);
        tried.extend(seen.map(|kept| (kept.shape.clone(), kept)));
        let tried: Vec<&PlacementTries> = tried.values().take(KEPT_MAX).collect();
        // Names and numbers can always be written.
        let text: Arc<str> = serde_json::to_string(&tried).ok()?.into();
        (looked.kept.as_ref() != Some(&text)).then_some(text)
    }

    fn was_kept(&self, text: Arc<str>) {
        self.0.lock().kept = Some(text);
    }
}

impl PlacementTries {
    fn is_of(&self, routing: &RoutingId, refusal: &Refusal) -> bool {
        self.pools == routing.pools && self.states == routing.states && self.reason == refusal.to_string()
    }
}

/// When placing jobs of a shape is tried.
fn ladder<'a>(shape: &Shape, limits: &'a Limits) -> PlacingLadder<'a> {
    PlacingLadder::new(&shape.to_string(), limits)
}

//! Gives up what nobody can ever take as things are: no pool for the topic, or no fitting worker in a pool whose workers
//! are chosen by the scheduler. Everything else waits for as long as its deadline allows.
//!
//! All jobs of one shape are in the same position, so the tries are counted by shape and from time, not written into every
//! row: a job has been tried as often as its wait has steps of the ladder. The count begins anew with the process, for
//! after a start nobody had the time to attach.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lockgate_core::job::{Input, Job, Reason};
use lockgate_core::lane::{LaneKey, Shape};
use lockgate_core::placement::Refusal;
use lockgate_core::pools::RoutingId;
use lockgate_core::retry::{PlacingTries, placing_span, placing_tries};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::round::Round;
use super::{Lead, tick};
use crate::Inner;

/// Shapes that nobody can take, since when, and why.
#[derive(Default)]
pub(crate) struct Hopeless(Mutex<Looked>);

/// What the latest look saw.
#[derive(Default)]
struct Looked {
    routing: RoutingId,
    shapes: Shapes,
}

type Shapes = BTreeMap<Arc<Shape>, (Timestamp, Refusal)>;

pub(super) async fn run(inner: Arc<Inner>, mut stop: watch::Receiver<bool>) {
    while tick(&mut stop, inner.settings.expire_every).await {
        if let Err(error) = inner.placing_once(&stop).await {
            inner.health.store_failed(&error);
            inner.metrics.loops.failed("placing");
            tracing::warn!(%error, "jobs that nobody can take could not be given up; trying again with the next tick");
        }
    }
}

impl Inner {
    pub(crate) async fn placing_once(&self, stop: &watch::Receiver<bool>) -> Result<(), StoreError> {
        let now = self.ports.clock.now();
        let span = placing_span(&self.settings.limits);
        // Before the look: a configuration that comes in between is a new chance.
        let routing = self.routing().id().clone();
        // What cannot be seen is not gone: it has been hopeless for as long as before.
        let Ok(waiting) = self.ports.lanes.demand().await else { return Ok(()) };
        let hopeless = waiting.iter().filter_map(|demand| Some((demand.shape.clone(), self.edge.hopeless(&demand.shape)?)));
        let given_up = self.hopeless.look(hopeless.collect(), &routing, now, span);
        if given_up.is_empty() {
            return Ok(());
        }
        let every = self.settings.expire_every;
        let Some(mut round) = Round::begin(self, stop, Lead::Placing, every).await? else { return Ok(()) };
        let Ok(depths) = self.ports.lanes.depths(usize::MAX).await else { return Ok(()) };
        let mut placed = Ok(());
        for depth in depths {
            let Some((since, refusal)) = given_up.get(&**depth.lane.shape.fit()) else { continue };
            if depth.oldest.is_some_and(|oldest| oldest.due_at > now - span) {
                continue;
            }
            if !round.goes_on().await? {
                break;
            }
            match self.give_up(&mut round, &depth.lane, (*since, refusal), &routing, now - span).await {
                // Of a Store that is away nobody needs to ask about every lane.
                Err(error) if !error.is_damage() => return Err(error),
                done => placed = placed.and(done),
            }
        }
        placed
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
        let change = self.edge.explain(&lane.shape).smallest_change(&lane.shape);
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

    /// How often placing this job was tried, if nobody can ever take it.
    pub(crate) fn placing_tries(&self, job: &Job, shape: &Arc<Shape>) -> Option<PlacingTries> {
        let since = self.hopeless.since(&shape.fit())?.max(job.life.due_at);
        Some(placing_tries(self.ports.clock.now().since(since), &self.settings.limits))
    }
}

impl Hopeless {
    /// Takes what is hopeless now. What has been so for at least `span`, for the same reason and under the same routing: a
    /// change of either is a new chance.
    fn look(&self, now_hopeless: Vec<(Arc<Shape>, Refusal)>, routing: &RoutingId, now: Timestamp, span: Duration) -> Shapes {
        let mut looked = self.0.lock();
        let Looked { routing: under, shapes: known } = &mut *looked;
        let mut before = std::mem::take(known);
        if under != routing {
            before.clear();
            *under = routing.clone();
        }
        for (shape, refusal) in now_hopeless {
            let same = before.get(&shape).filter(|(_, earlier)| *earlier == refusal);
            let since = same.map_or(now, |(since, _)| *since);
            known.insert(shape, (since, refusal));
        }
        known
            .iter()
            .filter(|(_, (since, _))| *since + span <= now)
            .map(|(shape, known)| (shape.clone(), known.clone()))
            .collect()
    }

    fn since(&self, shape: &Shape) -> Option<Timestamp> {
        self.0.lock().shapes.get(shape).map(|(since, _)| *since)
    }
}

//! Claims: encodes free worker slots for the script, and decodes its answer.

use std::collections::HashMap;
use std::sync::Arc;

use lockgate_core::lane::Shape;
use lockgate_core::pools::PriorityShares;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Claim, ClaimRequest, Claimed, Seat};
use serde::Serialize;

use super::card::{Card, bound};
use super::lane_catalog::LaneCatalog;
use super::{RedisLanes, words};
use crate::answer::{ScriptAnswer, sense};
use crate::error::LaneRefusal;
use crate::lane_server::{Again, ScriptArgs};
use crate::names;
use crate::scripts::SCRIPTS;

/// The most jobs of one claim, which bounds how long the script blocks the server.
const CLAIMS_MAX: usize = 4_096;

/// Ids of the requirements that workers of one kind meet.
type Fits = Vec<Arc<str>>;

#[derive(Serialize)]
struct ClaimArgs<'a> {
    /// Empty if the pool does not exist: then the claim only lets time pass.
    pool: &'a str,
    serving: &'a str,
    /// The serving pool's limit, or -1.
    bound: i64,
    limit: usize,
    now: i64,
    lease: u64,
    /// Empty with strict priorities.
    weights: Vec<u32>,
    /// Lists of requirement ids, each used by one or more seats.
    fits: Vec<Fits>,
    /// For each seat: free slots, and the number of its list.
    seats: Vec<(usize, usize)>,
}

impl RedisLanes {
    pub(super) async fn claim_some(&self, request: &ClaimRequest) -> Result<Claimed, LaneRefusal> {
        let catalog = self.catalog();
        let (fits, seats) = seats(&catalog, &request.seats);
        let free = seats.iter().fold(0_usize, |free, (seat, _)| free.saturating_add(*seat));
        let body = ClaimArgs {
            pool: catalog.pools.pool(&request.pool).map_or("", |pool| pool.name.as_str()),
            serving: request.serving.as_str(),
            bound: bound(&catalog.pools, &request.serving),
            limit: request.limit.min(free).min(CLAIMS_MAX),
            now: request.now.as_millis(),
            lease: u64::try_from(self.claim_lease.as_millis()).unwrap_or(u64::MAX),
            weights: match catalog.pools.fairness().priorities {
                PriorityShares::Weights(weights) => weights.map(|weight| weight.max(1)).into(),
                PriorityShares::Strict => Vec::new(),
            },
            fits,
            seats,
        };
        let body = sense(serde_json::to_string(&body).ok())?;
        let told = ScriptArgs { version: catalog.version, body, rest: Vec::new() };
        // Not repeated: jobs that a lost answer named return to their lanes when their claims expire.
        let (_, mut answer) = words(self.link.run(&SCRIPTS.claim, &told, Again::Never).await?)?;
        sense(self.read(&catalog, &mut answer))
    }

    fn read(&self, catalog: &LaneCatalog, answer: &mut ScriptAnswer) -> Option<Claimed> {
        let again_at = answer.number().filter(|at| *at >= 0).map(Timestamp::from_millis);
        let number = u64::try_from(answer.number()?).ok()?;
        let lanes: Vec<Arc<Card>> = answer.records(|lane| catalog.named(&lane.text()?, &lane.text()?))?;
        let mut recent = self.recent.lock();
        let claims = answer.records(|claim| {
            let (seat, lane, member) = (index(claim.number()?)?, index(claim.number()?)?, claim.text()?);
            let (key, job_id) = names::read_member(&member)?;
            let lane = lanes.get(lane)?.key.clone();
            // The job may have been offered for another lane since this process saw it.
            let job = recent.take(key).filter(|job| job.lane() == lane);
            Some(Claim { seat, job_id, lane, key, number, job })
        })?;
        Some(Claimed { claims, again_at })
    }
}

/// Scripts count from 1.
fn index(number: i64) -> Option<usize> {
    usize::try_from(number).ok()?.checked_sub(1)
}

/// Workers of one kind share one list of shapes, so the list is looked up and sent once for all of them.
fn seats(catalog: &LaneCatalog, seats: &[Seat]) -> (Vec<Fits>, Vec<(usize, usize)>) {
    let mut numbers: HashMap<*const Arc<Shape>, usize> = HashMap::new();
    let mut lists = Vec::new();
    let mut places = Vec::with_capacity(seats.len());
    for seat in seats {
        let number = *numbers.entry(seat.shapes.as_ptr()).or_insert_with(|| {
            let mut fits: Fits = seat.shapes.iter().filter_map(|shape| catalog.fit(shape)).collect();
            fits.sort_unstable();
            fits.dedup();
            lists.push(fits);
            lists.len()
        });
        places.push((seat.free.min(CLAIMS_MAX), number));
    }
    (lists, places)
}

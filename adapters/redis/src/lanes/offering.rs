//! Jobs enter the lanes: offered one by one, or in pages from the Store.

use std::collections::HashMap;
use std::sync::Arc;

use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use lockgate_ports::{Refill, RefillRequest};
use serde_json::json;

use super::lane_catalog::LaneCatalog;
use super::{BATCH_MAX, LaneCall, RedisLanes};
use crate::answer::sense;
use crate::error::LaneRefusal;
use crate::names;
use crate::scripts::SCRIPTS;

/// Jobs requested at once.
const PAGE: usize = 1_000;
/// Lanes requested at once: the pages come one after another, and all within [`ASK_LEASE_MS`].
const ASKS: usize = 128;
/// Lanes examined for that: more than are requested, because other processes may be requesting some.
const LOOKS: usize = 1_024;
/// How long a lane's page is reserved for one process. Longer than a page takes to come, or two processes would read it.
const ASK_LEASE_MS: u64 = 2_000;

impl RedisLanes {
    pub(super) async fn offer_all(&self, jobs: &[Arc<Job>]) {
        let catalog = self.catalog();
        for batch in jobs.chunks(BATCH_MAX) {
            self.keep(batch);
            let (lanes, rest) = by_lane(&catalog, batch);
            let call = LaneCall { catalog: &catalog, lanes, rest, last: false };
            if let Err(refused) = self.tell(&SCRIPTS.offer, call).await {
                self.unheard(&refused);
            }
        }
    }

    pub(super) async fn asks(&self) -> Result<Vec<RefillRequest>, LaneRefusal> {
        let catalog = self.catalog();
        let body = json!({ "asker": format!("{:016x}", self.asker), "lease": ASK_LEASE_MS, "asks": ASKS, "looks": LOOKS })
            .to_string();
        let mut answer = self.say(&catalog, &SCRIPTS.hungry, body, Vec::new()).await?;
        sense(answer.records(|ask| {
            let (id, json, after, ticket) = (ask.text()?, ask.text()?, ask.text()?, ask.number()?);
            let lane = catalog.named(&id, &json)?.key.clone();
            let after = names::read_place(&after);
            Some(RefillRequest { lane, after, limit: PAGE, ticket: ticket.cast_unsigned() })
        }))
    }

    pub(super) async fn feed_page(&self, page: Refill) -> Result<(), LaneRefusal> {
        let Refill { asked, jobs } = page;
        let catalog = self.catalog();
        let Some(card) = catalog.card(&asked.lane) else { return Ok(()) };
        self.keep(&jobs);
        let more = jobs.last().filter(|_| jobs.len() >= asked.limit);
        let last = more.map(|job| names::place(job.ready_key())).unwrap_or_default();
        let body = json!({ "lane": card.id, "ticket": asked.ticket, "last": last }).to_string();
        self.say(&catalog, &SCRIPTS.feed, body, jobs.iter().map(|job| member(job)).collect()).await.map(drop)
    }

    pub(super) fn keep(&self, jobs: &[Arc<Job>]) {
        let mut recent = self.recent.lock();
        jobs.iter().for_each(|job| recent.keep(job));
    }
}

/// Jobs grouped by lane, in order within a lane; lanes in the order of their first job.
fn by_lane(catalog: &LaneCatalog, jobs: &[Arc<Job>]) -> (Vec<(Arc<super::Card>, u64)>, Vec<String>) {
    let mut numbers: HashMap<LaneKey, usize> = HashMap::new();
    let mut groups: Vec<(Arc<super::Card>, Vec<String>)> = Vec::new();
    for job in jobs {
        let lane = job.lane();
        let number = match numbers.get(&lane) {
            Some(number) => *number,
            None => {
                let Some(card) = catalog.card(&lane) else { continue };
                groups.push((card, Vec::new()));
                numbers.insert(lane, groups.len() - 1);
                groups.len() - 1
            }
        };
        groups[number].1.push(member(job));
    }
    groups.iter_mut().for_each(|(_, members)| members.sort_unstable());
    let lanes = groups.iter().map(|(card, members)| (card.clone(), members.len() as u64)).collect();
    (lanes, groups.into_iter().flat_map(|(_, members)| members).collect())
}

fn member(job: &Job) -> String {
    names::member(job.ready_key(), &job.request.job_id)
}

//! Implements the Lanes port.

mod card;
mod claiming;
mod holding;
mod lane_catalog;
mod layout;
mod lost_calls;
mod offering;
mod recent;
mod releasing;
mod settling;
mod views;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::job::Job;
use lockgate_core::lane::LaneKey;
use lockgate_ports::{
    Adopted, ClaimRequest, Claimed, Condition, Demand, Hold, LaneDepth, LaneLayout, Lanes, LanesAway, LimitView, Refill,
    RefillRequest, Settlement, TenantShare,
};
use parking_lot::Mutex;
use redis::Value;
use serde::Serialize;

use self::card::{Card, Mention};
use self::lane_catalog::LaneCatalog;
use self::lost_calls::LostCalls;
use self::recent::Recent;
use self::releasing::Releases;
use crate::answer::{ScriptAnswer, sense};
use crate::error::{ConnectError, LaneRefusal};
use crate::lane_server::{Again, LaneCounters, LaneServer, ScriptArgs};
use crate::options::Options;
use crate::scripts::LoadedScript;

/// Jobs, settlements or lanes in one script, which bounds how long it blocks the server.
const BATCH_MAX: usize = 1_000;
/// How often a call is repeated because the server lost a lane's definition meanwhile.
const TRIES: usize = 4;

/// Until [`adopt`](Lanes::adopt) is called, this process assumes the lanes of version 0, in which one pool takes every
/// topic.
pub struct RedisLanes {
    link: Arc<LaneServer>,
    claim_lease: Duration,
    /// Distinguishes this process's page requests from those of others.
    asker: u64,
    catalog: Mutex<Arc<LaneCatalog>>,
    recent: Mutex<Recent>,
    heard: Mutex<LostCalls>,
    releases: Releases,
}

impl RedisLanes {
    /// Connects with the first call.
    pub fn new(options: &Options) -> Result<Self, ConnectError> {
        Ok(Self {
            link: Arc::new(LaneServer::new(options)?),
            claim_lease: options.claim_lease,
            // A hash with random keys: a random number that differs between processes.
            asker: RandomState::new().build_hasher().finish(),
            catalog: Mutex::new(Arc::new(LaneCatalog::new(0, Arc::default()))),
            recent: Mutex::default(),
            heard: Mutex::default(),
            releases: Releases::default(),
        })
    }

    /// Connects at once, so that a wrong address, password or server setting is reported at the start.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        let lanes = Self::new(options)?;
        lanes.link.connect().await?;
        Ok(lanes)
    }

    /// Requests to the server so far.
    pub fn counters(&self) -> LaneCounters {
        self.link.counters()
    }

    fn catalog(&self) -> Arc<LaneCatalog> {
        self.catalog.lock().clone()
    }

    /// Runs a script that may be executed twice without harm.
    async fn say(
        &self,
        catalog: &LaneCatalog,
        entry: &LoadedScript,
        body: String,
        rest: Vec<String>,
    ) -> Result<ScriptAnswer, LaneRefusal> {
        let told = ScriptArgs { version: catalog.version, body, rest };
        let (word, answer) = words(self.link.run(entry, &told, Again::Once).await?)?;
        if word == "ok" { Ok(answer) } else { sense(None) }
    }

    /// Runs a script on lanes, each with a number. Lanes that the server does not know are sent again with their
    /// definitions.
    async fn tell(&self, entry: &LoadedScript, call: LaneCall<'_>) -> Result<(), LaneRefusal> {
        let mut told = ScriptArgs { version: call.catalog.version, body: String::new(), rest: call.rest };
        for _ in 0..TRIES {
            let lanes: Vec<Mention<'_>> = call.lanes.iter().map(|(card, number)| card.mention(*number)).collect();
            told.body = mentions(&lanes, call.last)?;
            let (word, mut answer) = words(self.link.run(entry, &told, Again::Once).await?)?;
            match word.as_str() {
                "ok" => {
                    call.lanes.iter().for_each(|(card, _)| card.is_known(true));
                    return Ok(());
                }
                "missing" => call.catalog.forgotten(&sense(answer.texts())?),
                _ => return sense(None),
            }
        }
        tracing::warn!("Redis keeps evicting lane definitions; the lanes are marked for a rebuild");
        Err(LaneRefusal::Away)
    }

    /// The error for callers, with the reason.
    fn away(&self, refused: &LaneRefusal) -> LanesAway {
        LanesAway(match refused {
            LaneRefusal::Away => self.link.trouble(),
            LaneRefusal::Blank => "Redis was emptied, and they are not rebuilt yet".into(),
            LaneRefusal::Stale => "they follow pools that this process has not adopted yet".into(),
        })
    }

    /// A call did not reach the lanes: a rebuild must repair it. Blank lanes are rebuilt in any case.
    fn unheard(&self, refused: &LaneRefusal) {
        if !matches!(refused, LaneRefusal::Blank) {
            self.heard.lock().lose();
        }
    }
}

/// A call on lanes; their definitions are sent if needed.
struct LaneCall<'a> {
    catalog: &'a LaneCatalog,
    /// Each lane with the number that the script counts for it.
    lanes: Vec<(Arc<Card>, u64)>,
    rest: Vec<String>,
    /// Whether it is the last of several calls that belong together.
    last: bool,
}

#[derive(Serialize)]
struct Mentions<'a> {
    lanes: &'a [Mention<'a>],
    last: bool,
}

fn mentions(lanes: &[Mention<'_>], last: bool) -> Result<String, LaneRefusal> {
    sense(serde_json::to_string(&Mentions { lanes, last }).ok())
}

fn words(value: Value) -> Result<(String, ScriptAnswer), LaneRefusal> {
    let (word, answer) = sense(ScriptAnswer::read(value))?;
    match word.as_str() {
        "blank" => Err(LaneRefusal::Blank),
        "stale" => Err(LaneRefusal::Stale),
        _ => Ok((word, answer)),
    }
}

#[async_trait]
impl Lanes for RedisLanes {
    async fn adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Adopted {
        // Without an answer the layout did not change: the caller tries again.
        self.adopt_layout(layout, held).await.unwrap_or(Adopted::Outdated)
    }

    async fn condition(&self) -> Condition {
        self.look().await
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        self.offer_all(&jobs).await;
    }

    async fn refill(&self, page: Refill) {
        // A page that did not reach the lanes is requested again by the next claim.
        let _ = self.feed_page(page).await;
    }

    async fn claim(&self, request: ClaimRequest) -> Claimed {
        self.claim_some(&request).await.unwrap_or_default()
    }

    async fn settle(&self, settlements: Vec<Settlement>) {
        self.settle_all(&settlements).await;
    }

    async fn demand(&self) -> Result<Vec<Demand>, LanesAway> {
        self.demanded().await.map_err(|refused| self.away(&refused))
    }

    async fn hold(&self, attempts: Vec<Hold>) {
        self.hold_all(&attempts).await;
    }

    async fn release(&self, attempts: Vec<AttemptToken>) -> bool {
        self.release_together(attempts).await
    }

    async fn holding(&self) -> Result<Vec<AttemptToken>, LanesAway> {
        self.holders().await.map_err(|refused| self.away(&refused))
    }

    async fn limits(&self, lane: &LaneKey) -> Vec<LimitView> {
        self.limits_of(lane).await.unwrap_or_default()
    }

    async fn shares(&self, limit: usize) -> Result<Vec<TenantShare>, LanesAway> {
        self.tenant_shares(limit).await.map_err(|refused| self.away(&refused))
    }

    async fn claimed_total(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        self.claimed_by_pool().await.map_err(|refused| self.away(&refused))
    }

    async fn refill_requests(&self) -> Vec<RefillRequest> {
        self.asks().await.unwrap_or_default()
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        self.lane_depths(limit).await.map_err(|refused| self.away(&refused))
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        self.rebuild_all(&lanes).await;
    }
}

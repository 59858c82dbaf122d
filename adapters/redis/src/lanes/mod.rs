//! The port, call by call.

mod book;
mod card;
mod claiming;
mod heard;
mod holding;
mod layout;
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
    Adopted, ClaimRequest, Claimed, Condition, Demand, Hold, Hungry, LaneDepth, Lanes, LanesAway, Layout, LimitView, Page,
    Settlement, TenantShare,
};
use parking_lot::Mutex;
use redis::Value;
use serde::Serialize;

use self::book::Book;
use self::card::{Card, Mention};
use self::heard::Heard;
use self::recent::Recent;
use self::releasing::Releases;
use crate::answer::{Answer, sense};
use crate::error::{ConnectError, Refused};
use crate::link::{Again, Counters, Link, Told};
use crate::options::Options;
use crate::scripts::Entry;

/// Jobs, settlements or lanes in one script: bounds how long the server answers nobody else.
const BATCH_MAX: usize = 1_000;
/// Times a call is made again because the server forgot a lane meanwhile.
const TRIES: usize = 4;

/// Until [`adopt`](Lanes::adopt) says otherwise, this process takes the lanes for those of version 0, in which one pool takes
/// everything.
pub struct RedisLanes {
    link: Arc<Link>,
    claim_lease: Duration,
    /// Tells this process's asks from those of others.
    asker: u64,
    book: Mutex<Arc<Book>>,
    recent: Mutex<Recent>,
    heard: Mutex<Heard>,
    releases: Releases,
}

impl RedisLanes {
    /// Connects with the first call.
    pub fn new(options: &Options) -> Result<Self, ConnectError> {
        Ok(Self {
            link: Arc::new(Link::new(options)?),
            claim_lease: options.claim_lease,
            // Keyed at random: no two processes hash nothing to the same.
            asker: RandomState::new().build_hasher().finish(),
            book: Mutex::new(Arc::new(Book::new(0, Arc::default()))),
            recent: Mutex::default(),
            heard: Mutex::default(),
            releases: Releases::default(),
        })
    }

    /// Connects at once, so that a wrong address, password or setting of the server is known at once.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        let lanes = Self::new(options)?;
        lanes.link.connect().await?;
        Ok(lanes)
    }

    /// What was asked of the server so far.
    pub fn counters(&self) -> Counters {
        self.link.counters()
    }

    fn book(&self) -> Arc<Book> {
        self.book.lock().clone()
    }

    /// Runs a script that changes nothing twice by being run twice, or nothing at all.
    async fn say(&self, book: &Book, entry: &Entry, body: String, rest: Vec<String>) -> Result<Answer, Refused> {
        let told = Told { version: book.version, body, rest };
        let (word, answer) = words(self.link.run(entry, &told, Again::Once).await?)?;
        if word == "ok" { Ok(answer) } else { sense(None) }
    }

    /// Runs a script on lanes, each with a number, telling the server what they are if it does not know.
    async fn tell(&self, entry: &Entry, call: LaneCall<'_>) -> Result<(), Refused> {
        let mut told = Told { version: call.book.version, body: String::new(), rest: call.rest };
        for _ in 0..TRIES {
            let lanes: Vec<Mention<'_>> = call.lanes.iter().map(|(card, number)| card.mention(*number)).collect();
            told.body = mentions(&lanes, call.last)?;
            let (word, mut answer) = words(self.link.run(entry, &told, Again::Once).await?)?;
            match word.as_str() {
                "ok" => {
                    call.lanes.iter().for_each(|(card, _)| card.is_known(true));
                    return Ok(());
                }
                "missing" => call.book.forgotten(&sense(answer.texts())?),
                _ => return sense(None),
            }
        }
        tracing::warn!("Redis forgets lanes as fast as it is told of them; the call is made good for by a rebuild");
        Err(Refused::Away)
    }

    /// Why nobody can say what waits.
    fn away(&self, refused: &Refused) -> LanesAway {
        LanesAway(match refused {
            Refused::Away => self.link.trouble(),
            Refused::Blank => "Redis was emptied, and they are not rebuilt yet".into(),
            Refused::Stale => "they follow pools that this process has not adopted yet".into(),
        })
    }

    /// What was said was not heard. Blank lanes are filled from the Store in any case.
    fn unheard(&self, refused: &Refused) {
        if !matches!(refused, Refused::Blank) {
            self.heard.lock().lose();
        }
    }
}

/// A call on lanes that are defined with it where need be.
struct LaneCall<'a> {
    book: &'a Book,
    /// Each with what the script counts for it.
    lanes: Vec<(Arc<Card>, u64)>,
    rest: Vec<String>,
    /// Whether it is the last of several that belong together.
    last: bool,
}

#[derive(Serialize)]
struct Mentions<'a> {
    lanes: &'a [Mention<'a>],
    last: bool,
}

fn mentions(lanes: &[Mention<'_>], last: bool) -> Result<String, Refused> {
    sense(serde_json::to_string(&Mentions { lanes, last }).ok())
}

fn words(value: Value) -> Result<(String, Answer), Refused> {
    let (word, answer) = sense(Answer::read(value))?;
    match word.as_str() {
        "blank" => Err(Refused::Blank),
        "stale" => Err(Refused::Stale),
        _ => Ok((word, answer)),
    }
}

#[async_trait]
impl Lanes for RedisLanes {
    async fn adopt(&self, layout: Layout, held: Vec<Hold>) -> Adopted {
        // Who could not be asked did not change: the caller tries again.
        self.adopt_layout(layout, held).await.unwrap_or(Adopted::Outdated)
    }

    async fn condition(&self) -> Condition {
        self.look().await
    }

    async fn offer(&self, jobs: Vec<Arc<Job>>) {
        self.offer_all(&jobs).await;
    }

    async fn feed(&self, page: Page) {
        // What was not heard is asked for again.
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

    async fn taken(&self) -> Result<Vec<(PoolName, u64)>, LanesAway> {
        self.claimed_by_pool().await.map_err(|refused| self.away(&refused))
    }

    async fn hungry(&self) -> Vec<Hungry> {
        self.asks().await.unwrap_or_default()
    }

    async fn depths(&self, limit: usize) -> Result<Vec<LaneDepth>, LanesAway> {
        self.lane_depths(limit).await.map_err(|refused| self.away(&refused))
    }

    async fn rebuild(&self, lanes: Vec<(LaneKey, u64)>) {
        self.rebuild_all(&lanes).await;
    }
}

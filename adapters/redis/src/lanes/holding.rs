//! Concurrency limits that attempts hold.

use lockgate_core::ids::{AttemptToken, PoolName};
use lockgate_core::lane::LaneKey;
use lockgate_ports::Hold;

use super::card::{Mention, bound};
use super::lane_catalog::LaneCatalog;
use super::settling::Numbered;
use super::{BATCH_MAX, RedisLanes, mentions};
use crate::answer::sense;
use crate::error::LaneRefusal;
use crate::scripts::{LoadedScript, SCRIPTS};

/// A claim made under an earlier layout.
pub(super) struct Inherited {
    pub(super) lane: LaneKey,
    pub(super) pool: PoolName,
    pub(super) member: String,
    pub(super) ends: String,
    pub(super) number: String,
}

impl RedisLanes {
    pub(super) async fn hold_all(&self, attempts: &[Hold]) {
        if let Err(refused) = self.try_hold(&self.catalog(), attempts).await {
            self.unheard(&refused);
        }
    }

    pub(super) async fn try_hold(&self, catalog: &LaneCatalog, attempts: &[Hold]) -> Result<(), LaneRefusal> {
        for batch in attempts.chunks(BATCH_MAX) {
            let mut lanes = Numbered::default();
            let mut rest = Vec::with_capacity(batch.len() * 4);
            for Hold { lane, pool, token } in batch {
                if let Some(number) = lanes.number(catalog, lane) {
                    let bound = bound(&catalog.pools, pool).to_string();
                    rest.extend([number.to_string(), pool.to_string(), bound, token.as_str().to_owned()]);
                }
            }
            self.count(catalog, &SCRIPTS.hold, &lanes, rest, false).await?;
        }
        Ok(())
    }

    /// After the last batch the lanes can be claimed from.
    pub(super) async fn inherit(&self, catalog: &LaneCatalog, claims: &[Inherited]) -> Result<(), LaneRefusal> {
        let (mut at, batches) = (0, claims.len().div_ceil(BATCH_MAX).max(1));
        for number in 1..=batches {
            let batch = &claims[at..claims.len().min(at + BATCH_MAX)];
            at += batch.len();
            let mut lanes = Numbered::default();
            let mut rest = Vec::with_capacity(batch.len() * 6);
            for claim in batch {
                if let Some(number) = lanes.number(catalog, &claim.lane) {
                    let bound = bound(&catalog.pools, &claim.pool).to_string();
                    let (member, ends) = (claim.member.clone(), claim.ends.clone());
                    let lane = number.to_string();
                    rest.extend([lane, claim.pool.to_string(), bound, member, ends, claim.number.clone()]);
                }
            }
            self.count(catalog, &SCRIPTS.recount, &lanes, rest, number == batches).await?;
        }
        Ok(())
    }

    /// Holds may belong to lanes without waiting jobs, so the lanes are sent with their definitions and not created.
    async fn count(
        &self,
        catalog: &LaneCatalog,
        entry: &LoadedScript,
        lanes: &Numbered,
        rest: Vec<String>,
        last: bool,
    ) -> Result<(), LaneRefusal> {
        let lanes: Vec<Mention<'_>> = lanes.lanes.iter().map(|(card, number)| card.define(*number)).collect();
        self.say(catalog, entry, mentions(&lanes, last)?, rest).await.map(drop)
    }

    pub(super) async fn holders(&self) -> Result<Vec<AttemptToken>, LaneRefusal> {
        let mut answer = self.say(&self.catalog(), &SCRIPTS.holding, "{}".to_owned(), Vec::new()).await?;
        let mut tokens: Vec<AttemptToken> = sense(answer.texts())?.into_iter().map(AttemptToken::from).collect();
        tokens.sort_unstable();
        Ok(tokens)
    }
}

//! Which layout the lanes follow, and how they are restored after a loss.

use std::sync::Arc;

use lockgate_core::ids::PoolName;
use lockgate_core::lane::LaneKey;
use lockgate_ports::{Adopted, Condition, Hold, LaneLayout};
use redis::{Value, cmd};

use super::holding::Inherited;
use super::lane_catalog::LaneCatalog;
use super::{BATCH_MAX, LaneCall, RedisLanes, words};
use crate::answer::{ScriptAnswer, sense};
use crate::error::LaneRefusal;
use crate::lane_server::{Again, LaneServer, ScriptArgs};
use crate::scripts::SCRIPTS;

/// Keys scanned and keys deleted in one step when an earlier layout is removed.
const STEP: usize = 500;

impl RedisLanes {
    pub(super) async fn adopt_layout(&self, layout: LaneLayout, held: Vec<Hold>) -> Result<Adopted, LaneRefusal> {
        let adopted = self.try_adopt(layout, held).await?;
        if adopted != Adopted::Outdated {
            // Only after the holds were counted: a release before that would find nothing, and the hold would be counted
            // afterwards.
            self.release_unheard().await;
        }
        Ok(adopted)
    }

    async fn try_adopt(&self, layout: LaneLayout, held: Vec<Hold>) -> Result<Adopted, LaneRefusal> {
        let catalog = Arc::new(LaneCatalog::new(layout.version, layout.pools));
        let told = ScriptArgs { version: catalog.version, body: String::new(), rest: Vec::new() };
        // Not repeated: after an adoption whose answer was lost, a repeat would answer that nothing is to be done, and the
        // holds would not be counted.
        let (word, mut answer) = words(self.link.run(&SCRIPTS.adopt, &told, Again::Never).await?)?;
        match word.as_str() {
            "outdated" => Ok(Adopted::Outdated),
            "already" => {
                *self.catalog.lock() = catalog.clone();
                self.try_hold(&catalog, &held).await?;
                Ok(Adopted::Already)
            }
            _ => {
                *self.catalog.lock() = catalog.clone();
                let (era, known, claims) = sense(read(&mut answer))?;
                self.try_hold(&catalog, &known).await?;
                self.try_hold(&catalog, &held).await?;
                self.inherit(&catalog, &claims).await?;
                tokio::spawn(clear(self.link.clone(), era));
                Ok(Adopted::Anew)
            }
        }
    }

    pub(super) async fn look(&self) -> Condition {
        let meta = match self.link.meta().await {
            Err(_) => {
                // Other processes may have calls that were lost meanwhile and may end before they can report them, so this
                // one asks for a rebuild.
                self.heard.lock().lose();
                return Condition::Away(self.link.trouble());
            }
            Ok(None) => return Condition::Blank,
            Ok(Some(meta)) => meta,
        };
        let version = self.catalog().version;
        if meta.version < version {
            return Condition::Blank;
        }
        if meta.version > version {
            // Processes with the newer layout look after these lanes until this process learns of it.
            return Condition::Sound;
        }
        self.release_unheard().await;
        let behind = self.heard.lock().is_behind(&meta.rebuilds);
        if behind || !meta.built { Condition::Behind } else { Condition::Sound }
    }

    pub(super) async fn rebuild_all(&self, lanes: &[(LaneKey, u64)]) {
        match self.try_rebuild(lanes).await {
            Ok(()) => self.heard.lock().rebuilt(),
            Err(refused) => self.unheard(&refused),
        }
    }

    async fn try_rebuild(&self, lanes: &[(LaneKey, u64)]) -> Result<(), LaneRefusal> {
        let catalog = self.catalog();
        let (mut at, batches) = (0, lanes.len().div_ceil(BATCH_MAX).max(1));
        for number in 1..=batches {
            let batch = &lanes[at..lanes.len().min(at + BATCH_MAX)];
            at += batch.len();
            let lanes = batch.iter().filter_map(|(lane, count)| Some((catalog.card(lane)?, *count))).collect();
            let call = LaneCall { catalog: &catalog, lanes, rest: Vec::new(), last: number == batches };
            self.tell(&SCRIPTS.rebuild, call).await?;
        }
        Ok(())
    }
}

/// Decodes the holds and claims of the earlier layout.
fn read(answer: &mut ScriptAnswer) -> Option<(String, Vec<Hold>, Vec<Inherited>)> {
    let lane = |json: String| serde_json::from_str::<LaneKey>(&json).ok();
    let era = answer.text()?;
    let held = answer.records(|hold| {
        let (json, pool, token) = (hold.text()?, PoolName::from(hold.text()?), hold.text()?.into());
        Some(Hold { lane: lane(json)?, pool, token })
    })?;
    let claims = answer.records(|claim| {
        let (json, pool, member, ends) = (claim.text()?, PoolName::from(claim.text()?), claim.text()?, claim.text()?);
        Some(Inherited { lane: lane(json)?, pool, member, ends, number: claim.text()? })
    })?;
    Some((era, held, claims))
}

/// Deletes the keys of earlier layouts step by step. If a step fails, the rest is deleted after the next change.
async fn clear(link: Arc<LaneServer>, era: String) {
    let mut cursor = "0".to_owned();
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(&cursor).arg("MATCH").arg(format!("{}:*", link.root)).arg("COUNT").arg(STEP);
        let Some((next, keys)) = link.plain(&scan).await.ok().and_then(read_scan) else { return };
        let old: Vec<String> = keys.into_iter().filter(|key| is_older(key, &link.root, &era)).collect();
        if !old.is_empty() {
            let mut unlink = cmd("UNLINK");
            unlink.arg(&old);
            if link.plain(&unlink).await.is_err() {
                return;
            }
        }
        if next == "0" {
            return;
        }
        cursor = next;
    }
}

fn read_scan(value: Value) -> Option<(String, Vec<String>)> {
    redis::from_redis_value(value).ok()
}

/// Whether a key belongs to an earlier layout. Eras are times of equal length, so they compare as text.
fn is_older(key: &str, root: &str, era: &str) -> bool {
    let of = key.strip_prefix(root).and_then(|rest| rest.strip_prefix(':')).and_then(|rest| rest.split_once(':'));
    of.is_some_and(|(other, _)| other < era)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_earlier_layouts_are_cleared_away() {
        let older = |key: &str| is_older(key, "{lockgate:a}", "1700000000000002");
        assert!(older("{lockgate:a}:1700000000000001:lanes"));
        assert!(!older("{lockgate:a}:1700000000000002:lanes"));
        assert!(!older("{lockgate:a}:1700000000000003:lanes"));
        assert!(!older("{lockgate:a}:meta"));
        assert!(!older("{lockgate:b}:1700000000000001:lanes"));
    }
}

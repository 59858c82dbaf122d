//! Settles claims.

use std::collections::HashMap;
use std::sync::Arc;

use lockgate_core::lane::LaneKey;
use lockgate_ports::Settlement;

use super::card::Card;
use super::lane_catalog::LaneCatalog;
use super::{BATCH_MAX, LaneCall, RedisLanes};
use crate::names;
use crate::scripts::SCRIPTS;

impl RedisLanes {
    pub(super) async fn settle_all(&self, settlements: &[Settlement]) {
        let catalog = self.catalog();
        for batch in settlements.chunks(BATCH_MAX) {
            self.follow(batch);
            let (lanes, rest) = written(&catalog, batch);
            let call = LaneCall { catalog: &catalog, lanes, rest, last: false };
            if let Err(refused) = self.tell(&SCRIPTS.settle, call).await {
                self.unheard(&refused);
            }
        }
    }

    fn follow(&self, settlements: &[Settlement]) {
        let mut recent = self.recent.lock();
        for settlement in settlements {
            match settlement {
                Settlement::Returned { job, .. } => recent.keep(job),
                Settlement::Sent { key, .. } | Settlement::Gone { key, .. } => drop(recent.take(*key)),
            }
        }
    }
}

/// Lanes numbered by first appearance, from 1 as scripts count.
#[derive(Default)]
pub(super) struct Numbered {
    pub(super) lanes: Vec<(Arc<Card>, u64)>,
    numbers: HashMap<LaneKey, usize>,
}

impl Numbered {
    pub(super) fn number(&mut self, catalog: &LaneCatalog, lane: &LaneKey) -> Option<usize> {
        if let Some(number) = self.numbers.get(lane) {
            return Some(*number);
        }
        self.lanes.push((catalog.card(lane)?, 0));
        self.numbers.insert(lane.clone(), self.lanes.len());
        Some(self.lanes.len())
    }
}

fn written(catalog: &LaneCatalog, settlements: &[Settlement]) -> (Vec<(Arc<Card>, u64)>, Vec<String>) {
    let mut lanes = Numbered::default();
    let mut rest = Vec::with_capacity(settlements.len() * 4);
    for settlement in settlements {
        let (kind, lane, what, of) = match settlement {
            Settlement::Sent { lane, key, token } => ("s", lane, names::place(*key), token.as_str().to_owned()),
            Settlement::Gone { lane, key, claim } => ("g", lane, names::place(*key), said(*claim)),
            // Returned to the lane that it was claimed from, even if the job's own lane has changed.
            Settlement::Returned { lane, key, claim, job } => {
                ("r", lane, names::member(*key, &job.request.job_id), said(Some(*claim)))
            }
        };
        if let Some(number) = lanes.number(catalog, lane) {
            rest.extend([kind.to_owned(), number.to_string(), what, of]);
        }
    }
    (lanes.lanes, rest)
}

/// The number of a claim; empty if the settlement is about the job's place.
fn said(claim: Option<u64>) -> String {
    claim.map(|number| number.to_string()).unwrap_or_default()
}

//! Evidence as columns, each distinct piece once.

use lockgate_core::job::Evidence;
use lockgate_sql::codes;

use crate::conn::SqlParam;

/// How many of the latest pieces a new one is compared with. Changes of one call mostly share their evidence.
const COMPARED: usize = 8;

/// The evidence to check, numbered from 1 like arrays of the server.
#[derive(Default)]
pub(super) struct Proofs<'a> {
    pieces: Vec<&'a Evidence>,
}

impl<'a> Proofs<'a> {
    pub(super) fn number(&mut self, evidence: &'a Evidence) -> i64 {
        let known = self.pieces.iter().enumerate().rev().take(COMPARED).find(|(_, known)| **known == evidence);
        let place = known.map(|(place, _)| place).unwrap_or_else(|| {
            self.pieces.push(evidence);
            self.pieces.len() - 1
        });
        i64::try_from(place).unwrap_or(i64::MAX - 1) + 1
    }

    /// The sessions named, each once and sorted: all transactions lock them in this order.
    pub(super) fn sessions(&self) -> Vec<&'a str> {
        let mut sessions: Vec<&str> = self.pieces.iter().filter_map(|piece| session(piece).map(|(name, _)| name)).collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// The jobs whose version is evidence, each once and sorted: all transactions lock them in this order.
    pub(super) fn parents(&self) -> Vec<&'a str> {
        let mut parents: Vec<&str> = self.pieces.iter().filter_map(|piece| parent(piece).map(|(id, _)| id)).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }

    /// The first nine parameters of every statement that checks evidence.
    pub(super) fn params(&self, now: Option<i64>, shard: i64) -> Vec<SqlParam<'a>> {
        let column = |of: fn(&'a Evidence) -> Option<&'a str>| -> SqlParam<'a> {
            Box::new(self.pieces.iter().map(|piece| of(piece)).collect::<Vec<_>>())
        };
        let numbers = |of: fn(&Evidence) -> i64| -> SqlParam<'a> {
            Box::new(self.pieces.iter().map(|piece| of(piece)).collect::<Vec<_>>())
        };
        vec![
            Box::new(now),
            numbers(kind),
            column(|piece| session(piece).map(|(name, _)| name).or_else(|| Some(parent(piece)?.0))),
            numbers(|piece| match parent(piece) {
                Some((_, version)) => version,
                None => session(piece).map_or(0, |(_, epoch)| codes::stored(epoch)),
            }),
            column(|piece| match piece {
                Evidence::Allowed { policy, .. } | Evidence::InForce(policy) => Some(policy),
                _ => None,
            }),
            column(|piece| routing(piece).map(|(pools, _)| pools)),
            column(|piece| routing(piece).map(|(_, states)| states)),
            numbers(|piece| match piece {
                Evidence::Reached(at) => at.as_millis(),
                _ => 0,
            }),
            Box::new(shard),
        ]
    }
}

/// The kinds' numbers, which `proof.sql` repeats.
fn kind(evidence: &Evidence) -> i64 {
    match evidence {
        Evidence::Version => 0,
        Evidence::Reached(_) => 1,
        Evidence::Attached { .. } => 2,
        Evidence::Allowed { .. } => 3,
        Evidence::Routed(_) => 4,
        Evidence::Closed { .. } => 5,
        Evidence::Unchanged { .. } => 6,
        Evidence::InForce(_) => 7,
    }
}

fn session(evidence: &Evidence) -> Option<(&str, u64)> {
    match evidence {
        Evidence::Attached { session, epoch }
        | Evidence::Allowed { session, epoch, .. }
        | Evidence::Closed { session, epoch } => Some((session.as_str(), *epoch)),
        Evidence::Version | Evidence::Reached(_) | Evidence::Routed(_) => None,
        Evidence::Unchanged { .. } | Evidence::InForce(_) => None,
    }
}

fn parent(evidence: &Evidence) -> Option<(&str, i64)> {
    match evidence {
        Evidence::Unchanged { job, version } => Some((job.as_str(), *version)),
        _ => None,
    }
}

fn routing(evidence: &Evidence) -> Option<(&str, &str)> {
    match evidence {
        Evidence::Allowed { routing, .. } | Evidence::Routed(routing) => Some((&*routing.pools, &*routing.states)),
        _ => None,
    }
}

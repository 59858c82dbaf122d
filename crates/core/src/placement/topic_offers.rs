//! The workers of one pool, grouped by the list of topics that they serve.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::slots::SlabKey;
use crate::ids::Topic;
use crate::worker::serves;

/// Identifies one list of topic patterns in one pool. Never reused, so that an index for a former list takes in no other
/// workers.
pub(super) type OfferId = u64;

#[derive(Debug, Default)]
pub(super) struct TopicOffers {
    /// Fleets have few distinct lists, however many workers and topics they have.
    offers: BTreeMap<Vec<Arc<str>>, Offer>,
}

#[derive(Debug)]
struct Offer {
    id: OfferId,
    members: BTreeSet<SlabKey>,
}

/// The list that a worker serves, and whether it is new in its pool.
pub(super) struct Joined {
    pub(super) offer: OfferId,
    pub(super) is_new: bool,
}

impl TopicOffers {
    /// `fresh` is an unused id for the case that the list is new.
    pub(super) fn join(&mut self, topics: &[Arc<str>], slot: SlabKey, fresh: OfferId) -> Joined {
        if let Some(offer) = self.offers.get_mut(topics) {
            offer.members.insert(slot);
            return Joined { offer: offer.id, is_new: false };
        }
        self.offers.insert(topics.to_vec(), Offer { id: fresh, members: BTreeSet::from([slot]) });
        Joined { offer: fresh, is_new: true }
    }

    pub(super) fn leave(&mut self, topics: &[Arc<str>], slot: SlabKey) {
        if let Some(offer) = self.offers.get_mut(topics) {
            offer.members.remove(&slot);
            if offer.members.is_empty() {
                self.offers.remove(topics);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    /// The lists that include the topic. Topics with equal answers are served by the same workers.
    pub(super) fn offers_of(&self, topic: &Topic) -> BTreeSet<OfferId> {
        self.offers.iter().filter(|(topics, _)| serves(topics, topic)).map(|(_, offer)| offer.id).collect()
    }

    /// The workers that serve one of these lists.
    pub(super) fn members_of<'a>(&'a self, offers: &'a BTreeSet<OfferId>) -> impl Iterator<Item = SlabKey> + 'a {
        let chosen = self.offers.values().filter(|offer| offers.contains(&offer.id));
        chosen.flat_map(|offer| offer.members.iter().copied())
    }

    pub(super) fn members(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.offers.values().flat_map(|offer| offer.members.iter().copied())
    }
}

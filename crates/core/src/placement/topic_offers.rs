//! The workers of one pool, by what they offer to serve.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::slots::SlabKey;
use crate::ids::Topic;
use crate::worker::serves;

/// Identifies one list of topic patterns in one pool. Not used again, so a bench of a former list never takes in others.
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

/// What a worker offers, and whether nobody in the crew offered it before.
pub(super) struct Joined {
    pub(super) offer: OfferId,
    pub(super) is_new: bool,
}

impl TopicOffers {
    /// `fresh` is the id for an offer that is new, and not yet used in any crew.
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

    /// The offers that include the topic. Two topics with the same answer are served by the same workers.
    pub(super) fn offers_of(&self, topic: &Topic) -> BTreeSet<OfferId> {
        self.offers.iter().filter(|(topics, _)| serves(topics, topic)).map(|(_, offer)| offer.id).collect()
    }

    /// The workers with one of these offers.
    pub(super) fn members_of<'a>(&'a self, offers: &'a BTreeSet<OfferId>) -> impl Iterator<Item = SlabKey> + 'a {
        let chosen = self.offers.values().filter(|offer| offers.contains(&offer.id));
        chosen.flat_map(|offer| offer.members.iter().copied())
    }

    pub(super) fn members(&self) -> impl Iterator<Item = SlabKey> + '_ {
        self.offers.values().flat_map(|offer| offer.members.iter().copied())
    }
}

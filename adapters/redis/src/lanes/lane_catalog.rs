//! A cache of lane definitions. Everything in it can be derived again.

use std::collections::HashMap;
use std::sync::Arc;

use lockgate_core::lane::{LaneKey, Shape};
use lockgate_core::pools::Pools;
use parking_lot::Mutex;

use super::card::Card;
use crate::names;

/// The most cached lanes and shapes; above it the cache is emptied.
const REMEMBERED_MAX: usize = 50_000;

/// One layout, and the lanes derived from it.
pub(super) struct LaneCatalog {
    pub(super) version: u64,
    pub(super) pools: Arc<Pools>,
    pages: Mutex<CatalogEntries>,
}

/// Looked up and never iterated, so the order of the maps does not matter.
#[derive(Default)]
struct CatalogEntries {
    by_key: HashMap<LaneKey, Arc<Card>>,
    by_id: HashMap<String, Arc<Card>>,
    fits: HashMap<Arc<Shape>, Arc<str>>,
    shapes: HashMap<String, Arc<Shape>>,
}

impl LaneCatalog {
    pub(super) fn new(version: u64, pools: Arc<Pools>) -> Self {
        Self { version, pools, pages: Mutex::default() }
    }

    /// None only if the key cannot be written as JSON, which does not happen.
    pub(super) fn card(&self, key: &LaneKey) -> Option<Arc<Card>> {
        if let Some(card) = self.pages.lock().by_key.get(key) {
            return Some(card.clone());
        }
        let card = Arc::new(Card::new(key.clone(), &self.pools).ok()?);
        self.pages.lock().keep(&card);
        Some(card)
    }

    /// The lane with this id on the server; `json` is its key.
    pub(super) fn named(&self, id: &str, json: &str) -> Option<Arc<Card>> {
        if let Some(card) = self.pages.lock().by_id.get(id) {
            return Some(card.clone());
        }
        let card = self.card(&serde_json::from_str(json).ok()?)?;
        card.is_known(true);
        Some(card)
    }

    /// The server has evicted or lost the definitions of these lanes.
    pub(super) fn forgotten(&self, ids: &[String]) {
        let pages = self.pages.lock();
        for card in ids.iter().filter_map(|id| pages.by_id.get(id)) {
            card.is_known(false);
        }
    }

    /// The id of a shape's requirements on a worker.
    pub(super) fn fit(&self, shape: &Arc<Shape>) -> Option<Arc<str>> {
        if let Some(id) = self.pages.lock().fits.get(shape) {
            return Some(id.clone());
        }
        let id: Arc<str> = names::id(&serde_json::to_string(&**shape.fit()).ok()?).into();
        let mut pages = self.pages.lock();
        pages.make_room();
        pages.fits.insert(shape.clone(), id.clone());
        Some(id)
    }

    pub(super) fn shape(&self, json: String) -> Option<Arc<Shape>> {
        if let Some(shape) = self.pages.lock().shapes.get(&json) {
            return Some(shape.clone());
        }
        let shape: Arc<Shape> = Arc::new(serde_json::from_str(&json).ok()?);
        let mut pages = self.pages.lock();
        pages.make_room();
        pages.shapes.insert(json, shape.clone());
        Some(shape)
    }
}

impl CatalogEntries {
    fn keep(&mut self, card: &Arc<Card>) {
        self.make_room();
        self.by_key.insert(card.key.clone(), card.clone());
        self.by_id.insert(card.id.clone(), card.clone());
    }

    fn make_room(&mut self) {
        if self.by_key.len().max(self.fits.len()).max(self.shapes.len()) >= REMEMBERED_MAX {
            *self = Self::default();
        }
    }
}

//! The free seats of one claim, by the requirements that they meet.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lockgate_core::lane::Shape;

use super::catalog::Catalog;
use lockgate_ports::lanes::Seat;

#[derive(Debug)]
pub(super) struct Seats {
    seats: Vec<SeatPlace>,
    /// Seats that meet equal requirements, in turn order. Full ones are dropped when their turn comes.
    by_fit: BTreeMap<u32, OpenSeats>,
    free: usize,
}

#[derive(Debug)]
struct SeatPlace {
    free: usize,
    fits: Arc<[u32]>,
}

#[derive(Debug)]
struct OpenSeats {
    order: VecDeque<usize>,
    /// Seats in `order` that are not full.
    open: usize,
}

impl Seats {
    pub(super) fn new(seats: &[Seat], catalog: &Catalog) -> Self {
        // Workers of one kind share one list of shapes, so the list is looked up once for all of them.
        let mut known: BTreeMap<*const Arc<Shape>, Arc<[u32]>> = BTreeMap::new();
        let mut plan = Self { seats: Vec::with_capacity(seats.len()), by_fit: BTreeMap::new(), free: 0 };
        for (at, seat) in seats.iter().enumerate() {
            let fits = known.entry(seat.shapes.as_ptr()).or_insert_with(|| {
                let mut ids: Vec<u32> = seat.shapes.iter().filter_map(|shape| catalog.find_fit(shape)).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.into()
            });
            plan.seats.push(SeatPlace { free: seat.free, fits: fits.clone() });
            if seat.free > 0 && !fits.is_empty() {
                plan.open(at, seat.free);
            }
        }
        plan
    }

    fn open(&mut self, at: usize, free: usize) {
        self.free += free;
        for fit in self.seats[at].fits.iter() {
            let open = self.by_fit.entry(*fit).or_insert_with(|| OpenSeats { order: VecDeque::new(), open: 0 });
            open.order.push_back(at);
            open.open += 1;
        }
    }

    /// Free worker slots left.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Requirements for which some seat has room.
    pub(super) fn fits(&self) -> impl Iterator<Item = u32> {
        self.by_fit.keys().copied()
    }

    pub(super) fn has(&self, fit: u32) -> bool {
        self.by_fit.contains_key(&fit)
    }

    /// Takes a slot. Seats take turns, so that load is even. Also returns whether some requirements have no seat left.
    pub(super) fn take(&mut self, fit: u32) -> Option<(usize, bool)> {
        let open = self.by_fit.get_mut(&fit)?;
        while open.order.front().is_some_and(|at| self.seats[*at].free == 0) {
            open.order.pop_front();
        }
        let at = open.order.pop_front()?;
        open.order.push_back(at);
        self.free -= 1;
        let place = &mut self.seats[at];
        place.free -= 1;
        Some((at, place.free == 0 && self.close(at)))
    }

    /// The seat is full. Returns whether some requirements have no seat left.
    fn close(&mut self, at: usize) -> bool {
        let mut closed = false;
        for fit in self.seats[at].fits.iter() {
            if let Some(open) = self.by_fit.get_mut(fit) {
                open.open -= 1;
                if open.open == 0 {
                    self.by_fit.remove(fit);
                    closed = true;
                }
            }
        }
        closed
    }
}

//! The free seats of one claim, by the shapes that fit them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use lockgate_core::lane::Shape;

use super::interned::Interned;
use crate::lanes::Seat;

#[derive(Debug)]
pub(super) struct Seats {
    seats: Vec<Place>,
    /// Seats that a shape fits, in turn order. Full ones are dropped when they come up.
    by_shape: BTreeMap<u32, Open>,
    free: usize,
}

#[derive(Debug)]
struct Place {
    free: usize,
    shapes: Arc<[u32]>,
}

#[derive(Debug)]
struct Open {
    order: VecDeque<usize>,
    /// Seats in `order` that are not full.
    open: usize,
}

impl Seats {
    pub(super) fn new(seats: &[Seat], shapes: &Interned<Arc<Shape>>) -> Self {
        // Workers of one kind share one list of shapes, so it is looked up once for all of them.
        let mut known: BTreeMap<*const Arc<Shape>, Arc<[u32]>> = BTreeMap::new();
        let mut plan = Self { seats: Vec::with_capacity(seats.len()), by_shape: BTreeMap::new(), free: 0 };
        for (at, seat) in seats.iter().enumerate() {
            let fits = known.entry(seat.shapes.as_ptr()).or_insert_with(|| {
                let mut ids: Vec<u32> = seat.shapes.iter().filter_map(|shape| shapes.find(shape)).collect();
                ids.sort_unstable();
                ids.dedup();
                ids.into()
            });
            plan.seats.push(Place { free: seat.free, shapes: fits.clone() });
            if seat.free > 0 && !fits.is_empty() {
                plan.open(at, seat.free);
            }
        }
        plan
    }

    fn open(&mut self, at: usize, free: usize) {
        self.free += free;
        for shape in self.seats[at].shapes.iter() {
            let open = self.by_shape.entry(*shape).or_insert_with(|| Open { order: VecDeque::new(), open: 0 });
            open.order.push_back(at);
            open.open += 1;
        }
    }

    /// Places left.
    pub(super) fn free(&self) -> usize {
        self.free
    }

    /// Shapes that some seat has a place for.
    pub(super) fn shapes(&self) -> impl Iterator<Item = u32> {
        self.by_shape.keys().copied()
    }

    pub(super) fn fits(&self, shape: u32) -> bool {
        self.by_shape.contains_key(&shape)
    }

    /// Takes a place for a shape. Seats take turns, so that load is even. True when this closed a shape.
    pub(super) fn take(&mut self, shape: u32) -> Option<(usize, bool)> {
        let open = self.by_shape.get_mut(&shape)?;
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

    /// The seat is full. Whether some shape has no seat left.
    fn close(&mut self, at: usize) -> bool {
        let mut closed = false;
        for shape in self.seats[at].shapes.iter() {
            if let Some(open) = self.by_shape.get_mut(shape) {
                open.open -= 1;
                if open.open == 0 {
                    self.by_shape.remove(shape);
                    closed = true;
                }
            }
        }
        closed
    }
}

//! Interns names as small numbers, and derives from a shape its requirements on a worker and its queue.

use std::collections::BTreeSet;
use std::sync::Arc;

use lockgate_core::ids::TenantId;
use lockgate_core::lane::{LaneKey, Priority, Shape};

use super::interned::Interned;

/// A lane, by the numbers of its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaneAddress {
    pub(super) priority: Priority,
    pub(super) tenant: u32,
    pub(super) shape: u32,
}

#[derive(Debug, Default)]
pub(super) struct Catalog {
    tenants: Interned<TenantId>,
    shapes: Interned<Arc<Shape>>,
    /// The distinct requirements of shapes on a worker. Seats and turns use these, so that ten thousand concurrency keys
    /// count as one kind of work.
    fits: Interned<Arc<Shape>>,
    /// The fit of a shape, by the shape's number.
    fit_of: Vec<u32>,
    /// The queue of a fit, by the fit's number.
    queue_of: Vec<usize>,
}

impl Catalog {
    /// The lane's numbers, assigned if necessary; `queue` chooses the queue for new requirements.
    pub(super) fn place(&mut self, key: &LaneKey, queue: impl FnOnce(&Shape) -> usize) -> LaneAddress {
        let (tenant, _) = self.tenants.intern(&key.tenant);
        let (shape, new_shape) = self.shapes.intern(&key.shape);
        if new_shape {
            let (fit, new_fit) = self.fits.intern(&key.shape.fit());
            set(&mut self.fit_of, shape, fit);
            if new_fit {
                set(&mut self.queue_of, fit, queue(&key.shape));
            }
        }
        LaneAddress { priority: key.priority, tenant, shape }
    }

    pub(super) fn find(&self, key: &LaneKey) -> Option<LaneAddress> {
        let (tenant, shape) = (self.tenants.find(&key.tenant)?, self.shapes.find(&key.shape)?);
        Some(LaneAddress { priority: key.priority, tenant, shape })
    }

    /// The number of a shape's requirements, if some lane has them.
    pub(super) fn find_fit(&self, shape: &Arc<Shape>) -> Option<u32> {
        self.fits.find(&shape.fit())
    }

    /// The requirements and the queue of a known lane.
    pub(super) fn kind(&self, at: LaneAddress) -> (u32, usize) {
        let fit = self.fit_of[at.shape as usize];
        (fit, self.queue_of[fit as usize])
    }

    /// Known requirements and their queue.
    pub(super) fn fit(&self, fit: u32) -> Option<(&Arc<Shape>, usize)> {
        Some((self.fits.get(fit)?, self.queue_of[fit as usize]))
    }

    pub(super) fn tenant(&self, tenant: u32) -> Option<&TenantId> {
        self.tenants.get(tenant)
    }

    /// Forgets all names that none of these lanes has. Returns the tenants that remain.
    pub(super) fn retain<'a>(&mut self, lanes: impl Iterator<Item = &'a LaneAddress>) -> BTreeSet<u32> {
        let (tenants, shapes): (BTreeSet<u32>, BTreeSet<u32>) = lanes.map(|at| (at.tenant, at.shape)).unzip();
        let fits: BTreeSet<u32> = shapes.iter().map(|shape| self.fit_of[*shape as usize]).collect();
        self.tenants.retain(|id| tenants.contains(&id));
        self.shapes.retain(|id| shapes.contains(&id));
        self.fits.retain(|id| fits.contains(&id));
        tenants
    }
}

fn set<T: Copy + Default>(values: &mut Vec<T>, at: u32, value: T) {
    let at = at as usize;
    if values.len() <= at {
        values.resize(at + 1, T::default());
    }
    values[at] = value;
}

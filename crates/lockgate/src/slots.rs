//! Options about a worker's slots other than their number.

use std::time::Duration;

use lockgate_worker::{AdaptiveSlots, Worker};

use crate::args::SlotGroup;

/// Groups of topics with slots of their own, and bounds between which the other slots follow the load.
#[derive(Clone, Debug, Default)]
pub(crate) struct SlotPlan {
    pub(crate) groups: Vec<SlotGroup>,
    pub(crate) adaptive: Option<(u32, u32)>,
    pub(crate) target_p95: Option<Duration>,
}

impl SlotPlan {
    pub(crate) fn given_to(self, worker: Worker) -> Worker {
        let target_p95 = self.target_p95;
        let worker = match self.adaptive {
            Some((min, max)) => worker.adaptive_slots(AdaptiveSlots { min, max, target_p95 }),
            None => worker,
        };
        let add = |worker: Worker, group: SlotGroup| worker.bulkhead(group.name, group.slots, group.topics);
        self.groups.into_iter().fold(worker, add)
    }
}

//! What becomes of changes on their way to the disk.

use lockgate_core::job::EventKind;
use lockgate_ports::Change;

fn says(change: &Change, kind: EventKind) -> bool {
    change.transition.events.iter().any(|event| event.kind == kind)
}

pub(super) fn charge_losses(changes: &mut [Change]) {
    for change in changes.iter_mut().filter(|change| says(change, EventKind::AttemptLost)) {
        change.transition.job.life.counters.failures += 1;
    }
}

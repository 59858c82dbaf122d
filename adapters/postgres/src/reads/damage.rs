//! Rows that cannot be decoded are left out of lists, and told of once: one of them must not stop its neighbours.

use lockgate_ports::Unreadable;

use crate::error::Fault;

/// What was read of a row, if it could be.
pub(super) fn or_told<T>(
    unreadable: &Unreadable,
    name: impl FnOnce() -> String,
    read: Result<T, Fault>,
) -> Result<Option<T>, Fault> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(fault @ Fault::Row(_)) => {
            tell(unreadable, &name(), &fault);
            Ok(None)
        }
        Err(fault) => Err(fault),
    }
}

fn tell(unreadable: &Unreadable, row: &str, fault: &Fault) {
    if unreadable.meet(row, fault) {
        tracing::error!(
            row,
            %fault,
            "a row cannot be read and is left out; its neighbours go on. Was it written by a newer version, or by hand? Upgrade \
             this process, or mend the row"
        );
    }
}

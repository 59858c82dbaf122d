//! What holds while nothing was applied, as the texts that would say the same.

use lockgate_ports::SnapshotKind;

const POLICY: &str = "version: 1\ndefault: {decision: allow, reason: no policy configured}\n";
const POOLS: &str = "topics: {'*': default}\npools: {default: {}}\n";
const TIMEOUTS: &str = "defaults: {dispatch: 120s, running: 300s}\n";
const QUOTAS: &str = "ceilings: {jobs: 10000000}\n";

/// None of what no file can say.
pub(super) const fn text(kind: SnapshotKind) -> Option<&'static str> {
    match kind {
        SnapshotKind::Policy => Some(POLICY),
        SnapshotKind::Pools => Some(POOLS),
        SnapshotKind::Timeouts => Some(TIMEOUTS),
        SnapshotKind::Quotas => Some(QUOTAS),
        SnapshotKind::PoolStates => None,
    }
}

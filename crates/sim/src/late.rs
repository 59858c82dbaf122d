//! Late writes. A call in flight when its connection is closed may still take effect, unless a fence prevents it: only
//! commits of jobs and steps of runs are fenced.

use lockgate_ports::StoreError;

use crate::faults::Fault;
use crate::store::FaultyStore;

/// The longest delay of a late write.
const LATE_MS: u64 = 4_000;

impl FaultyStore {
    /// Whether a write takes effect after its caller got an unknown outcome. Never with a file, because the process has it
    /// for itself.
    pub(crate) fn is_late(&self, per_mille: u64) -> bool {
        self.remote && self.faults.inject(per_mille, Fault::WriteLate)
    }

    /// Executes the write later, even if the process has died by then. Returns the error for the caller.
    pub(crate) fn land_late<T: Send + 'static>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreError {
        let late = self.faults.millis(LATE_MS);
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            // The caller has its answer already.
            let _ = write.await;
        });
        StoreError::UnknownOutcome("simulated: on its way".into())
    }
}

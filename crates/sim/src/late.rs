//! Writes that nobody waits for any more. A call that was on its way when its connection was given up may still arrive, where
//! nothing fences it: only commits of jobs and steps of runs are fenced.

use lockgate_ports::StoreError;

use crate::faults::Fault;
use crate::store::FaultyStore;

/// How late a write lands at most.
const LATE_MS: u64 = 4_000;

impl FaultyStore {
    /// Whether a write lands after its caller was told that nobody knows. Not in a file, which a process has for itself.
    pub(crate) fn is_late(&self, per_mille: u64) -> bool {
        self.remote && self.faults.inject(per_mille, Fault::WriteLate)
    }

    /// Lets the write land later, even if the process is gone by then. Returns what the caller is told.
    pub(crate) fn land_late<T: Send + 'static>(
        &self,
        write: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> StoreError {
        let late = self.faults.millis(LATE_MS);
        tokio::spawn(async move {
            tokio::time::sleep(late).await;
            // There is nobody to tell.
            let _ = write.await;
        });
        StoreError::UnknownOutcome("simulated: on its way".into())
    }
}

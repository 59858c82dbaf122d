//! The load of the machine: measured after each beat, and sent with the next.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use lockgate_contract::Load;
use tokio::task::spawn_blocking;

use super::adapt::AdaptiveSlots;
use super::proc_text::{CpuTimes, memory_load};
use super::state::SessionState;

/// Returns the GPU's load in percent.
pub(crate) type GpuLoad = Box<dyn FnMut() -> Option<u32> + Send>;

pub(crate) struct Gauge {
    /// `/proc` of Linux. Other systems do not have it, and nothing is measured there.
    proc: PathBuf,
    gpu: Option<GpuLoad>,
    cpu_before: Option<CpuTimes>,
}

impl Gauge {
    pub(crate) fn new(gpu: Option<GpuLoad>) -> Self {
        Self { proc: PathBuf::from("/proc"), gpu, cpu_before: None }
    }

    /// Blocks. The CPU load is the average since the previous reading, so the first reading has none.
    fn read(&mut self) -> Load {
        Load { cpu: self.cpu(), gpu: self.gpu(), memory: self.text("meminfo").and_then(|text| memory_load(&text)) }
    }

    fn cpu(&mut self) -> Option<u32> {
        let now = CpuTimes::parse(&self.text("stat")?)?;
        let before = self.cpu_before.replace(now)?;
        now.load_since(before)
    }

    fn gpu(&mut self) -> Option<u32> {
        let read = self.gpu.as_mut()?;
        match catch_unwind(AssertUnwindSafe(read)) {
            Ok(percent) => Some(percent?.min(100)),
            Err(_) => {
                tracing::error!("reading the GPU's load panicked: it is not read again");
                self.gpu = None;
                None
            }
        }
    }

    fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(file)).ok()
    }
}

/// Measures for ever, in a task of its own: on a large machine, or with a slow GPU library, a reading takes long, and no
/// beat may wait for it.
pub(crate) async fn watch(session_state: Arc<SessionState>, mut gauge: Gauge, adaptive: Option<AdaptiveSlots>) {
    loop {
        let reading = spawn_blocking(move || {
            let load = gauge.read();
            (gauge, load)
        });
        // Fails only if the runtime is shutting down.
        let Ok((again, load)) = reading.await else { return };
        gauge = again;
        session_state.measured(load);
        if let Some(adaptive) = &adaptive {
            adaptive.look(&session_state, load.cpu);
        }
        session_state.beaten().await;
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn gauge(proc: &Path, gpu: Option<GpuLoad>) -> Gauge {
        Gauge { proc: proc.to_owned(), ..Gauge::new(gpu) }
    }

    #[test]
    fn the_processors_load_needs_two_readings() {
        let folder = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| fs::write(folder.path().join(file), text).unwrap();
        write("meminfo", "MemTotal: 1000 kB\nMemAvailable: 600 kB\n");
        write("stat", "cpu  100 0 0 900 0 0 0 0\n");
        let mut gauge = gauge(folder.path(), None);
        assert_eq!(gauge.read(), Load { cpu: None, gpu: None, memory: Some(40) });
        write("stat", "cpu  130 0 0 970 0 0 0 0\n");
        assert_eq!(gauge.read(), Load { cpu: Some(30), gpu: None, memory: Some(40) });
    }

    #[test]
    fn where_nothing_can_be_read_nothing_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let mut gauge = gauge(folder.path(), None);
        gauge.read();
        assert_eq!(gauge.read(), Load::default());
    }

    #[test]
    fn more_than_all_of_a_gpu_is_all_of_it_and_a_reading_that_panics_is_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let mut answers = [Some(Some(250)), Some(None), Some(Some(7)), None].into_iter();
        let mut gauge = gauge(folder.path(), Some(Box::new(move || answers.next().unwrap().unwrap())));
        let read = [(); 5].map(|()| gauge.read().gpu);
        assert_eq!(read, [Some(100), None, Some(7), None, None]);
    }
}

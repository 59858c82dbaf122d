//! Scans of contents in this process, which take as long as the content is large and must not hold up anything else.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::output::OutputVerdict;
use lockgate_core::policy::{FailMode, OutputGate, OutputRules};
use lockgate_ports::OutputContent;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

/// Up to this size a scan is shorter than the way to another thread and back.
const INLINE_BYTES_MAX: usize = 64 * 1024;
/// Threads that scan at once. A scan that takes too long is no longer waited for, but keeps its thread.
const THREADS_MAX: usize = 4;
/// How long one content may take, with the wait for a thread. Whoever asks from elsewhere waits a little longer.
const WITHIN: Duration = Duration::from_secs(30);

pub(super) struct Scanner {
    threads: Arc<Semaphore>,
    within: Duration,
}

impl Default for Scanner {
    fn default() -> Self {
        Self { threads: Arc::new(Semaphore::new(THREADS_MAX)), within: WITHIN }
    }
}

impl Scanner {
    /// What the rules say about a content. None: nobody could look.
    pub(super) async fn scan(&self, gate: &OutputGate, rules: OutputRules, output: &OutputContent) -> Option<OutputVerdict> {
        if output.result.as_str().len() <= INLINE_BYTES_MAX {
            return gate.content(&rules, &output.request, &output.result);
        }
        let until = Instant::now() + self.within;
        let thread = timeout_at(until, self.threads.clone().acquire_owned()).await.ok()?.ok()?;
        let scan = {
            let (gate, rules, output) = (gate.clone(), rules.clone(), output.clone());
            spawn_blocking(move || {
                let _thread = thread;
                gate.content(&rules, &output.request, &output.result)
            })
        };
        match timeout_at(until, scan).await {
            Ok(scanned) => scanned.ok().flatten(),
            Err(_) => self.took_too_long(gate, &rules, output),
        }
    }

    /// An open mode lets it out and looks again; a closed one would wait for ever for a content that is never done.
    fn took_too_long(&self, gate: &OutputGate, rules: &OutputRules, output: &OutputContent) -> Option<OutputVerdict> {
        let (request, bytes) = (&output.request, output.result.as_str().len());
        tracing::warn!(job_id = %request.job_id, bytes, within = ?self.within, "a result was not scanned in time");
        match gate.fail_mode(rules, request) {
            FailMode::Open => None,
            FailMode::Closed => gate.unreadable(rules, request, bytes, &format!("it took longer than {:?}", self.within)),
        }
    }
}

#[cfg(test)]
mod tests;

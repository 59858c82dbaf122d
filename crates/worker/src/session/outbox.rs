//! Collects what must be sent into one message.
//!
//! Starts and results are kept as tokens and looked up in the [`HeldAttempts`] when they are sent: an attempt that was
//! stopped or acknowledged meanwhile is left out, and a start is not sent if its result is there already.

use std::collections::{BTreeMap, VecDeque};

use lockgate_proto::v1::{Beat, LogReport, ProgressReport, WorkerMessage};
use tokio::time::Instant;

use super::held::HeldAttempts;

/// The most bytes of results in one message, so that a message stays far below the server's 32 MiB.
const RESULT_BYTES_PER_MESSAGE: usize = 4 << 20;
const LOG_BYTES_PER_MESSAGE: usize = 1 << 20;
/// Log bytes kept while the connection is down or slow. Beyond that, new lines are dropped and counted.
const LOG_BYTES_WAITING: usize = 4 << 20;
/// Longest log line kept; the rest is cut.
pub(crate) const LOG_LINE_BYTES_MAX: usize = 8 << 10;

#[derive(Default)]
pub(crate) struct Outbox {
    starts: Vec<String>,
    results: VecDeque<String>,
    progress: BTreeMap<String, ProgressReport>,
    logs: VecDeque<LogReport>,
    log_bytes: usize,
    logs_dropped: u64,
    beat: Option<Beat>,
    draining: bool,
    /// Stopped attempts whose handlers have ended.
    let_go: Vec<String>,
}

impl Outbox {
    pub(crate) fn push_start(&mut self, token: String) {
        self.starts.push(token);
    }

    pub(crate) fn push_result(&mut self, token: String) {
        self.results.push_back(token);
    }

    pub(crate) fn push_progress(&mut self, report: ProgressReport) {
        self.progress.insert(report.token.clone(), report);
    }

    pub(crate) fn push_log(&mut self, mut log: LogReport) {
        if self.log_bytes > LOG_BYTES_WAITING {
            self.logs_dropped += 1;
            return;
        }
        let dropped = std::mem::take(&mut self.logs_dropped);
        if dropped > 0 {
            log.line.insert_str(0, &format!("[{dropped} log lines of this worker were dropped here] "));
        }
        log.line.truncate(log.line.floor_char_boundary(LOG_LINE_BYTES_MAX));
        self.log_bytes += weight(&log);
        self.logs.push_back(log);
    }

    /// The inventory is filled in when the beat is sent.
    pub(crate) fn push_beat(&mut self, beat: Beat) {
        self.beat = Some(beat);
    }

    pub(crate) fn push_results(&mut self, tokens: Vec<String>) {
        self.results.extend(tokens);
    }

    pub(crate) fn push_let_go(&mut self, token: String) {
        self.let_go.push(token);
    }

    pub(crate) fn push_draining(&mut self) {
        self.draining = true;
    }

    /// Prepares a new stream: messages that the last one may have lost are sent again. Logs and progress are not, because a
    /// doubled line would be worse than a lost one.
    pub(crate) fn rewind(&mut self, held: &HeldAttempts, draining: bool) {
        self.beat = None;
        self.draining = draining;
        // The inventory of the hello has told it.
        self.let_go.clear();
        self.starts = held.all_going().filter(|a| a.started_at_ms().is_some()).map(|a| a.token().to_owned()).collect();
        self.results = held.all_reports().map(|report| report.token.clone()).collect();
    }

    /// Everything that waits, as one message; None if nothing waits.
    pub(crate) fn next_message(&mut self, held: &mut HeldAttempts) -> Option<WorkerMessage> {
        let (draining, let_go) = (std::mem::take(&mut self.draining), std::mem::take(&mut self.let_go));
        let mut message = WorkerMessage { draining, let_go, ..WorkerMessage::default() };
        self.fill_starts(&mut message, held);
        self.fill_results(&mut message, held);
        self.fill_logs(&mut message, held);
        message.progress = std::mem::take(&mut self.progress).into_values().filter(|p| held.is_held(&p.token)).collect();
        message.beat = self.beat.take();
        if let Some(beat) = &mut message.beat {
            (beat.highest_assignment, beat.inventory) = (held.highest(), held.inventory());
        }
        (message != WorkerMessage::default()).then_some(message)
    }

    fn fill_starts(&mut self, message: &mut WorkerMessage, held: &HeldAttempts) {
        let going = |token: String| {
            let job_id = held.going(&token)?.assignment.job_id.clone();
            Some(lockgate_proto::v1::Start { job_id, token })
        };
        message.starts = self.starts.drain(..).filter_map(going).collect();
    }

    fn fill_results(&mut self, message: &mut WorkerMessage, held: &mut HeldAttempts) {
        let now = Instant::now();
        let mut bytes = 0;
        while bytes < RESULT_BYTES_PER_MESSAGE
            && let Some(token) = self.results.pop_front()
        {
            if let Some(report) = held.report_sent(&token, now) {
                bytes += prost::Message::encoded_len(report);
                message.results.push(report.clone());
            }
        }
    }

    fn fill_logs(&mut self, message: &mut WorkerMessage, held: &HeldAttempts) {
        let mut bytes = 0;
        while bytes < LOG_BYTES_PER_MESSAGE
            && let Some(log) = self.logs.pop_front()
        {
            bytes += weight(&log);
            self.log_bytes -= weight(&log);
            if held.is_held(&log.token) {
                message.logs.push(log);
            }
        }
    }
}

/// The memory of a waiting line: its text and its ids.
fn weight(log: &LogReport) -> usize {
    log.line.len() + log.token.len() + log.job_id.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_proto::v1::{Assignment, Result as Report};

    use super::*;
    use crate::session::attempt::RunningAttempt;

    fn hold(held: &mut HeldAttempts, token: &str) -> Arc<RunningAttempt> {
        let attempt =
            Arc::new(RunningAttempt::new(Assignment { number: 1, token: token.to_owned(), ..Assignment::default() }));
        assert!(held.take(&attempt));
        attempt.start();
        attempt
    }

    fn line(token: &str, text: &str) -> LogReport {
        LogReport { token: token.to_owned(), line: text.to_owned(), ..LogReport::default() }
    }

    #[test]
    fn a_start_whose_result_is_there_is_not_sent() {
        let (mut held, mut outbox) = (HeldAttempts::default(), Outbox::default());
        let done = hold(&mut held, "done");
        hold(&mut held, "going");
        outbox.push_start("done".to_owned());
        outbox.push_start("going".to_owned());
        held.finish(&done, Report { token: "done".to_owned(), ..Report::default() });
        outbox.push_result("done".to_owned());
        let message = outbox.next_message(&mut held).unwrap();
        assert_eq!(message.starts.iter().map(|s| &*s.token).collect::<Vec<_>>(), ["going"]);
        assert_eq!(message.results.len(), 1);
        assert!(outbox.next_message(&mut held).is_none());
    }

    #[test]
    fn nothing_but_its_end_is_said_of_a_stopped_attempt() {
        let (mut held, mut outbox) = (HeldAttempts::default(), Outbox::default());
        hold(&mut held, "a");
        outbox.push_start("a".to_owned());
        outbox.push_log(line("a", "hello"));
        outbox.push_progress(ProgressReport { token: "a".to_owned(), ..ProgressReport::default() });
        held.stop("a");
        assert!(outbox.next_message(&mut held).is_none());
        outbox.push_let_go("a".to_owned());
        let said = outbox.next_message(&mut held);
        assert_eq!(said, Some(WorkerMessage { let_go: vec!["a".to_owned()], ..WorkerMessage::default() }));
    }

    #[test]
    fn a_flood_of_log_lines_is_bounded_and_says_so() {
        let (mut held, mut outbox) = (HeldAttempts::default(), Outbox::default());
        hold(&mut held, "a");
        for _ in 0..2_000 {
            outbox.push_log(line("a", &"x".repeat(2 * LOG_LINE_BYTES_MAX)));
        }
        let mut sent = 0;
        while let Some(message) = outbox.next_message(&mut held) {
            sent += message.logs.len();
            assert!(message.logs.iter().all(|log| log.line.len() <= LOG_LINE_BYTES_MAX));
        }
        assert!(sent < 1_000);
        outbox.push_log(line("a", "after"));
        let said = outbox.next_message(&mut held).unwrap().logs.remove(0).line;
        assert_eq!(said, format!("[{} log lines of this worker were dropped here] after", 2_000 - sent));
    }

    #[test]
    fn large_results_are_spread_over_messages() {
        let (mut held, mut outbox) = (HeldAttempts::default(), Outbox::default());
        for n in 0..10 {
            let token = format!("t{n}");
            let result_json = bytes::Bytes::from(vec![b'x'; 1 << 20]);
            let outcome =
                lockgate_proto::v1::result::Outcome::Succeeded(lockgate_proto::v1::result::Succeeded { result_json });
            held.restore(Report { token: token.clone(), outcome: Some(outcome), ..Report::default() });
            outbox.push_result(token);
        }
        let sizes: Vec<_> = std::iter::from_fn(|| outbox.next_message(&mut held)).map(|m| m.results.len()).collect();
        assert_eq!(sizes, [4, 4, 2]);
    }
}

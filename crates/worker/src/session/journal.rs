//! The result journal: an append-only file of results that must survive this process, written in batches by one thread.
//!
//! A result is sent without waiting for the file. If the process dies before the write, the server sees the attempt as if
//! the process had died a moment earlier. The file only prevents that a finished job runs again because the worker died
//! before the server took the result.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lockgate_proto::v1::Result as Report;
use prost::Message;

use super::journal_file::{JournalFile, JournalRecord};

/// The delay before a failed write is repeated.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// A smaller file is not rewritten; a larger one is, once most of it is no longer needed.
const REWRITE_ABOVE_BYTES: u64 = 1 << 20;

/// An order to the journal's thread; None: write the rest and end.
type JournalOrder = Option<JournalRecord>;

pub(crate) struct Journal {
    orders: mpsc::Sender<JournalOrder>,
}

/// The journal's thread.
pub(crate) struct JournalWriter {
    orders: mpsc::Sender<JournalOrder>,
    thread: thread::JoinHandle<()>,
}

impl Journal {
    /// Opens or creates the file. Returns the results that earlier processes left in it.
    pub(crate) fn open(path: &Path) -> io::Result<(Self, JournalWriter, Vec<Report>)> {
        let (file, live) = JournalFile::open(path)?;
        let (mut reports, mut unreadable) = (Vec::with_capacity(live.len()), Vec::new());
        for (token, bytes) in &live {
            match Report::decode(bytes.as_slice()) {
                Ok(report) => reports.push(report),
                Err(error) => {
                    tracing::error!(path = %path.display(), token, %error, "a result in the journal cannot be read and is removed");
                    unreadable.push(token.clone());
                }
            }
        }
        let (orders, inbox) = mpsc::channel();
        let journal = Self { orders: orders.clone() };
        journal.remove(unreadable);
        let mut keeper = Keeper { path: path.to_owned(), file, live, broken: false };
        let thread = thread::Builder::new().name("lockgate-journal".to_owned()).spawn(move || keeper.run(&inbox))?;
        Ok((journal, JournalWriter { orders, thread }, reports))
    }

    pub(crate) fn add(&self, report: &Report) {
        self.tell(JournalRecord::Added { token: report.token.clone(), report: report.encode_to_vec() });
    }

    pub(crate) fn remove(&self, tokens: Vec<String>) {
        tokens.into_iter().for_each(|token| self.tell(JournalRecord::Removed { token }));
    }

    fn tell(&self, record: JournalRecord) {
        if self.orders.send(Some(record)).is_err() {
            tracing::error!("the journal is closed: results are kept in memory only");
        }
    }
}

impl JournalWriter {
    /// Waits until everything is on disk. Blocks.
    pub(crate) fn close(self) {
        // Sending fails only if the thread has died, which the join reports.
        let _ = self.orders.send(None);
        if self.thread.join().is_err() {
            tracing::error!("the journal's thread panicked");
        }
    }
}

struct Keeper {
    path: PathBuf,
    file: JournalFile,
    live: BTreeMap<String, Vec<u8>>,
    /// The last write failed, so the end of the file is unknown: the next write makes a new file.
    broken: bool,
}

impl Keeper {
    fn run(&mut self, inbox: &mpsc::Receiver<JournalOrder>) {
        loop {
            let patience = if self.broken { TRY_AGAIN_AFTER } else { Duration::MAX };
            let first = match inbox.recv_timeout(patience) {
                Ok(order) => Some(order),
                Err(mpsc::RecvTimeoutError::Timeout) => None,
                Err(mpsc::RecvTimeoutError::Disconnected) => Some(None),
            };
            let orders: Vec<JournalOrder> = first.into_iter().chain(inbox.try_iter()).collect();
            let end = orders.iter().any(Option::is_none);
            self.store(orders.into_iter().flatten().collect());
            if end {
                return;
            }
        }
    }

    fn store(&mut self, batch: Vec<JournalRecord>) {
        let batch = self.apply(batch);
        let wasteful = self.file.len() > REWRITE_ABOVE_BYTES && self.file.len() / 2 > self.live_bytes();
        let stored = if self.broken || wasteful {
            JournalFile::replace(&self.path, &self.live).map(|file| self.file = file)
        } else {
            self.file.append(&batch)
        };
        if let Err(error) = &stored {
            tracing::error!(path = %self.path.display(), %error, "the result journal cannot be written; results are kept in memory");
        }
        self.broken = stored.is_err();
    }

    /// Updates the live set. Returns the records to write; a result acknowledged within the batch is never written.
    fn apply(&mut self, batch: Vec<JournalRecord>) -> Vec<JournalRecord> {
        let mut added = BTreeMap::new();
        let mut removed = Vec::new();
        for record in batch {
            match record {
                JournalRecord::Added { token, report } => {
                    self.live.insert(token.clone(), report.clone());
                    added.insert(token, report);
                }
                JournalRecord::Removed { token } => {
                    if self.live.remove(&token).is_some() && added.remove(&token).is_none() {
                        removed.push(JournalRecord::Removed { token });
                    }
                }
            }
        }
        let added = added.into_iter().map(|(token, report)| JournalRecord::Added { token, report });
        removed.into_iter().chain(added).collect()
    }

    fn live_bytes(&self) -> u64 {
        self.live.iter().map(|(token, report)| (token.len() + report.len()) as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(token: &str) -> Report {
        Report { job_id: format!("job-{token}"), token: token.to_owned(), ..Report::default() }
    }

    fn reopened(path: &Path) -> Vec<String> {
        let (_, writer, reports) = Journal::open(path).unwrap();
        writer.close();
        reports.into_iter().map(|report| report.token).collect()
    }

    #[test]
    fn what_was_not_acknowledged_is_there_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (journal, writer, restored) = Journal::open(&path).unwrap();
        assert!(restored.is_empty());
        for token in ["a", "b", "c"] {
            journal.add(&report(token));
        }
        journal.remove(vec!["b".to_owned()]);
        writer.close();
        let (journal, writer, restored) = Journal::open(&path).unwrap();
        assert_eq!(restored, [report("a"), report("c")]);
        journal.remove(vec!["a".to_owned()]);
        writer.close();
        assert_eq!(reopened(&path), ["c"]);
    }

    #[test]
    fn a_result_that_cannot_be_read_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (mut file, _) = JournalFile::open(&path).unwrap();
        let added = |token: &str, report: Vec<u8>| JournalRecord::Added { token: token.to_owned(), report };
        file.append(&[added("bad", vec![0xff; 3]), added("good", report("good").encode_to_vec())]).unwrap();
        drop(file);
        assert_eq!(reopened(&path), ["good"]);
        let (_, live) = JournalFile::open(&path).unwrap();
        assert_eq!(live.into_keys().collect::<Vec<_>>(), ["good"]);
    }

    #[test]
    fn a_file_full_of_acknowledged_results_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (file, live) = JournalFile::open(&path).unwrap();
        let mut keeper = Keeper { path: path.clone(), file, live, broken: false };
        let large = vec![7; 600 << 10];
        for token in ["a", "b", "c"] {
            keeper.store(vec![JournalRecord::Added { token: token.to_owned(), report: large.clone() }]);
        }
        let full = std::fs::metadata(&path).unwrap().len();
        for token in ["a", "b"] {
            keeper.store(vec![JournalRecord::Removed { token: token.to_owned() }]);
        }
        assert!(std::fs::metadata(&path).unwrap().len() < full / 2);
        assert_eq!(keeper.live.len(), 1);
    }

    #[test]
    fn a_broken_journal_is_written_anew_when_the_disk_is_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (file, live) = JournalFile::open(&path).unwrap();
        let mut keeper = Keeper { path: path.clone(), file, live, broken: true };
        keeper.store(vec![JournalRecord::Added { token: "a".to_owned(), report: report("a").encode_to_vec() }]);
        assert!(!keeper.broken);
        drop(keeper);
        assert_eq!(reopened(&path), ["a"]);
    }
}

//! A command in a process group of its own, so that killing the group kills everything that it started.

use std::collections::BTreeMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::timeout;

/// The most bytes kept of each output; all of it is sent as log lines.
const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// A line longer than this is sent in pieces.
const LINE_BYTES_MAX: usize = 4 << 10;
/// How long output may arrive after the command and its group have ended: a process that left the group may hold the pipe.
const OUTPUT_WITHIN: Duration = Duration::from_secs(1);

/// Fields are dropped in this order: the group must be killed before its leader is reaped.
pub(super) struct ExecProcess {
    group: ProcessGroup,
    child: Child,
}

pub(super) struct Captured {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub truncated: bool,
}

impl ExecProcess {
    pub(super) fn start(program: &str, arguments: &[String], env: &BTreeMap<String, String>) -> io::Result<Self> {
        let child = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Ok(Self { group: ProcessGroup(pid), child })
    }

    /// Writes the command's input, passes on its output line by line, and waits for it. Dropping this future kills the
    /// group.
    pub(super) async fn finish(mut self, stdin: String, log: impl Fn(String)) -> io::Result<Captured> {
        let mut input = self.child.stdin.take();
        let feed = async move {
            if let Some(pipe) = &mut input {
                // A command need not read its input.
                let _ = pipe.write_all(stdin.as_bytes()).await;
            }
        };
        let (mut stdout, mut stderr) = (Capture::default(), Capture::default());
        let (out_pipe, err_pipe) = (self.child.stdout.take(), self.child.stderr.take());
        {
            let outputs = async { tokio::join!(feed, stdout.read(out_pipe, &log), stderr.read(err_pipe, &log)) };
            tokio::pin!(outputs);
            tokio::select! {
                biased;
                ended = self.group.leader_ended() => {
                    ended?;
                    self.group.kill();
                    let _ = timeout(OUTPUT_WITHIN, outputs).await;
                }
                _ = &mut outputs => {
                    self.group.leader_ended().await?;
                    self.group.kill();
                }
            }
        }
        let status = self.child.wait().await?;
        let truncated = stdout.truncated;
        Ok(Captured { status, stdout: stdout.text(), stderr: stderr.text(), truncated })
    }
}

/// Kills the whole group when dropped. The group's id is its leader's pid, which cannot be reused before the leader is
/// reaped, so the group is always killed first.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Waits until the leader has ended, without reaping it.
    async fn leader_ended(&self) -> io::Result<()> {
        let Some(pid) = self.0 else { return Ok(()) };
        // Subscribe before checking, so that no end is missed in between.
        let mut ends = signal(SignalKind::child())?;
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        while waitid(WaitId::Pid(pid), look)?.is_none() {
            ends.recv().await;
        }
        Ok(())
    }

    fn kill(&mut self) {
        if let Some(pid) = self.0.take() {
            // The group does not exist any more, which is fine.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}

#[derive(Default)]
struct Capture {
    kept: Vec<u8>,
    line: Vec<u8>,
    truncated: bool,
}

impl Capture {
    async fn read(&mut self, pipe: Option<impl AsyncRead + Unpin>, log: &impl Fn(String)) {
        let Some(mut pipe) = pipe else { return };
        let mut buffer = vec![0; 8 << 10];
        // A broken pipe ends the output like any other end.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            self.take_in(&buffer[..count], log);
        }
        self.send_line(log);
    }

    fn take_in(&mut self, bytes: &[u8], log: &impl Fn(String)) {
        let room = OUTPUT_BYTES_MAX - self.kept.len();
        self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.truncated |= bytes.len() > room;
        for byte in bytes {
            if *byte == b'\n' {
                self.send_line(log);
                continue;
            }
            self.line.push(*byte);
            if self.line.len() == LINE_BYTES_MAX {
                self.send_line(log);
            }
        }
    }

    fn send_line(&mut self, log: &impl Fn(String)) {
        if !self.line.is_empty() {
            log(String::from_utf8_lossy(&self.line).into_owned());
            self.line.clear();
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_ended_leader_keeps_its_number_until_the_group_is_killed() {
        let mut process = ExecProcess::start("true", &[], &BTreeMap::new()).unwrap();
        let pid = process.group.0.unwrap();
        process.group.leader_ended().await.unwrap();
        let waits = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG);
        assert!(waits.unwrap().is_some(), "it is still there to be collected");
        process.group.kill();
        assert!(process.child.wait().await.unwrap().success());
    }

    #[test]
    fn output_is_kept_up_to_a_bound_and_logged_in_lines() {
        let lines = parking_lot::Mutex::new(Vec::new());
        let log = |line: String| lines.lock().push(line);
        let mut capture = Capture::default();
        capture.take_in(b"one\ntw", &log);
        capture.take_in(b"o\n\n", &log);
        capture.take_in(&vec![b'x'; OUTPUT_BYTES_MAX], &log);
        assert!(capture.truncated);
        assert_eq!(capture.text().len(), OUTPUT_BYTES_MAX);
        let lines = lines.into_inner();
        assert_eq!(lines[..2], ["one", "two"]);
        assert!(lines[2..].iter().all(|line| line.len() == LINE_BYTES_MAX));
    }
}

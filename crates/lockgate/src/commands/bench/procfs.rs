//! The resources that a process has used, as the kernel reports them.

use std::fs;

/// The resources used so far by one process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProcessUsage {
    pub(super) cpu_seconds: f64,
    pub(super) bytes_written: f64,
    pub(super) rss_megabytes: f64,
}

/// Clock ticks a second in /proc, the same on every Linux.
const TICKS: f64 = 100.0;

impl ProcessUsage {
    /// Zero if the kernel does not report it.
    pub(super) fn of(pid: u32) -> Self {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let stat = read("stat");
        // The command's name may hold anything; the fields after it do not.
        let fields: Vec<f64> =
            stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(|f| f.parse().unwrap_or(0.0)).collect();
        let ticks = fields.get(11).unwrap_or(&0.0) + fields.get(12).unwrap_or(&0.0);
        Self {
            cpu_seconds: ticks / TICKS,
            bytes_written: number_after(&read("io"), "write_bytes:"),
            rss_megabytes: number_after(&read("status"), "VmRSS:") / 1024.0,
        }
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self {
            cpu_seconds: self.cpu_seconds - before.cpu_seconds,
            bytes_written: self.bytes_written - before.bytes_written,
            rss_megabytes: self.rss_megabytes,
        }
    }
}

fn number_after(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|n| n.parse().ok()).unwrap_or(0.0)
}

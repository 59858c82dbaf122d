//! Parses the load figures of Linux's `/proc`.

/// The time that all processors have spent since boot, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    busy: u128,
    idle: u128,
}

impl CpuTimes {
    /// Reads `/proc/stat`, whose first line has the sums over all processors: user, nice, system, idle, iowait, irq,
    /// softirq, steal. The further fields are time of guests, which user and nice include.
    pub(crate) fn parse(stat: &str) -> Option<Self> {
        let mut words = stat.lines().next()?.split_ascii_whitespace();
        if words.next()? != "cpu" {
            return None;
        }
        let ticks = words.take(8).map(|word| word.parse::<u64>().ok().map(u128::from)).collect::<Option<Vec<_>>>()?;
        let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks[..] else { return None };
        // A processor that waits for a disk could run other work, so iowait counts as idle.
        Some(Self { busy: user + nice + system + irq + softirq + steal, idle: idle + iowait })
    }

    /// None if no time has passed. The kernel's counts may go back a little, which counts as no load.
    pub(crate) fn load_since(self, earlier: Self) -> Option<u32> {
        let busy = self.busy.saturating_sub(earlier.busy);
        let idle = self.idle.saturating_sub(earlier.idle);
        percent(busy, busy + idle)
    }
}

/// Reads `/proc/meminfo`: the share of memory that programs could not have without pushing others out.
pub(crate) fn memory_load(meminfo: &str) -> Option<u32> {
    let total = kilobytes(meminfo, "MemTotal:")?;
    let available = kilobytes(meminfo, "MemAvailable:")?;
    percent(total.saturating_sub(available), total)
}

fn kilobytes(meminfo: &str, name: &str) -> Option<u128> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_ascii_whitespace().next()?.parse::<u64>().ok().map(u128::from)
}

/// To the nearest whole; none of nothing.
fn percent(part: u128, whole: u128) -> Option<u32> {
    u32::try_from((part * 100 + whole / 2).checked_div(whole)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(numbers: &str) -> Option<CpuTimes> {
        CpuTimes::parse(&format!("cpu  {numbers}\ncpu0 1 1 1 1\nintr 5 0 1\n"))
    }

    #[test]
    fn processors_are_busy_unless_idle_or_waiting_for_a_disk() {
        assert_eq!(times("10 2 3 100 20 4 5 6 7 8"), Some(CpuTimes { busy: 30, idle: 120 }));
        assert_eq!(times("10 2 3 100 20 4 5 6"), Some(CpuTimes { busy: 30, idle: 120 }), "a kernel without guests");
    }

    #[test]
    fn the_load_is_the_busy_share_of_the_time_between_two_readings() {
        let [first, second] = [times("100 0 0 900 0 0 0 0"), times("175 0 0 924 0 0 0 1")].map(Option::unwrap);
        assert_eq!(second.load_since(first), Some(76));
        assert_eq!(first.load_since(first), None, "no time has passed");
        assert_eq!(first.load_since(second), None, "it does not go backwards either");
        let waited = times("101 0 0 899 0 0 0 0").unwrap();
        assert_eq!(waited.load_since(first), Some(100), "an idle count that stepped back counts as none");
    }

    #[test]
    fn memory_that_could_be_given_at_once_is_free() {
        let meminfo = "MemTotal:       24682416 kB\nMemFree:          260080 kB\nMemAvailable:    6170604 kB\n";
        assert_eq!(memory_load(meminfo), Some(75));
        assert_eq!(memory_load("MemTotal: 100 kB\nMemAvailable: 120 kB\n"), Some(0));
    }

    #[test]
    fn what_cannot_be_read_is_not_measured() {
        for stat in ["", "\n", "cpu", "cpu  1 2 3 4 5 6 7", "cpu  1 2 x 4 5 6 7 8", "cpu0 1 2 3 4 5 6 7 8", "intr 1 2 3 4"] {
            assert_eq!(CpuTimes::parse(stat), None, "{stat:?}");
        }
        for meminfo in [
            "",
            "MemTotal: 5 kB\n",
            "MemAvailable: 5 kB\n",
            "MemTotal:\nMemAvailable: 1 kB",
            "MemTotal: 0 kB\nMemAvailable: 0 kB",
        ] {
            assert_eq!(memory_load(meminfo), None, "{meminfo:?}");
        }
    }
}

//! The rules of deploy/prometheus, made quick: a story of minutes cannot wait for windows of hours.

/// By how much time is shortened in them: windows, offsets, how long something must hold, ages, and the one count that is a
/// rate in disguise. Everything else, such as ratios and depths, is asked as it stands.
const SHORTENED: u64 = 20;

/// What is compared with a number of seconds, or of things within a window, and by how much that is shortened. The slowest loop
/// comes round every half a minute, in a story too: it must not look stuck.
const OF_TIME: [(&str, u64); 5] = [
    ("_deferred_seconds", SHORTENED),
    ("_oldest_seconds", SHORTENED),
    ("_unsealed_seconds", SHORTENED),
    ("_tick_timestamp_seconds", 3),
    ("lockgate_retried_total[", SHORTENED),
];

/// The rules with shorter times.
pub(super) fn quick(rules: &str) -> String {
    rules.lines().map(|line| shorter_bound(&shorter_spans(line)) + "\n").collect()
}

/// Every span of a line, such as `5m`; but not the end of a name, such as `p95_5m`.
fn shorter_spans(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let (before, from) = rest.split_at(start);
        let digits = from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len());
        let (number, after) = from.split_at(digits);
        let begins = !before.ends_with(|c: char| c.is_alphanumeric() || "_:.".contains(c));
        text += before;
        rest = match span(number, after).filter(|_| begins) {
            Some(millis) => {
                text += &format!("{}ms", millis / SHORTENED);
                &after[1..]
            }
            None => {
                text += number;
                after
            }
        };
    }
    text + rest
}

/// In milliseconds, if a unit follows the number and nothing else.
fn span(number: &str, after: &str) -> Option<u64> {
    let mut after = after.chars();
    let millis = match after.next()? {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        _ => return None,
    };
    let ends = after.next().is_none_or(|c| !c.is_alphanumeric() && c != '_');
    number.parse::<u64>().ok().filter(|_| ends).map(|number| number * millis)
}

fn shorter_bound(line: &str) -> String {
    let shorter = || {
        let (asked, bound) = line.rsplit_once(" > ")?;
        let (_, by) = OF_TIME.iter().find(|(name, _)| asked.contains(name))?;
        Some(format!("{asked} > {}", bound.parse::<u64>().ok()? / by))
    };
    shorter().unwrap_or_else(|| line.to_owned())
}

/// Names of the alerts there are.
pub(super) fn alerts(rules: &str) -> impl Iterator<Item = &str> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shorter_and_names_stay() {
        assert_eq!(quick("  for: 5m"), "  for: 15000ms\n");
        assert_eq!(quick("rate(a_total[1h]) offset 30m"), "rate(a_total[180000ms]) offset 90000ms\n");
        for same in ["record: lockgate:x:ratio_5m", "lockgate:failure_ratio:10m > 0.2", "max(a) > 10000", "14.4 * 0.001"] {
            assert_eq!(quick(same), format!("{same}\n"));
        }
    }

    #[test]
    fn ages_and_counts_within_a_window_are_shorter_and_others_stay() {
        assert_eq!(quick("max(lockgate_pending_oldest_seconds) > 60"), "max(lockgate_pending_oldest_seconds) > 3\n");
        assert_eq!(
            quick("sum(increase(lockgate_retried_total[5m])) > 5000"),
            "sum(increase(lockgate_retried_total[15000ms])) > 250\n"
        );
        let tick = "time() - lockgate_loop_tick_timestamp_seconds{loop!~\"lockgate:(a|b)\"} > ";
        assert_eq!(quick(&format!("{tick}180")), format!("{tick}60\n"));
        assert_eq!(quick("max(lockgate_queue_depth) > 10000"), "max(lockgate_queue_depth) > 10000\n");
    }
}

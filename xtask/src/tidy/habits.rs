//! Habits of tests and of product code: no sleeps, few unwraps.

use super::functions::{Function, functions};
use super::source::Source;
use super::{Severity, TidyFinding};

/// Most `unwrap` and `expect` calls outside of tests, per thousand lines of the workspace.
const UNWRAPS_PER_1000: usize = 2;
const SLEEPS: [&str; 3] = ["thread::sleep(", "time::sleep(", "sleep_ms("];
/// Each of them works on a paused clock only.
const PAUSES: [&str; 3] = ["start_paused", "time::pause()", "time::advance("];

/// A test that sleeps is slow on a good day and wrong on a bad one. Two places may: a file whose clock is paused, where
/// sleeping costs nothing, and a polling loop with a deadline, which must be called `wait_…`.
pub(crate) fn sleeping_tests(source: &Source) -> Vec<TidyFinding> {
    if PAUSES.iter().any(|pause| source.code.contains(pause)) {
        return Vec::new();
    }
    let waits: Vec<Function> = functions(source).into_iter().filter(|f| f.name.starts_with("wait_")).collect();
    let excused = |line: usize| waits.iter().any(|f| (f.first..=f.last).contains(&line));
    let lines = source.code.lines().enumerate();
    lines
        .filter(|(at, line)| source.is_test(*at) && !excused(*at) && SLEEPS.iter().any(|sleep| line.contains(sleep)))
        .map(|(at, _)| {
            let text = "a test sleeps; pause time, wait for a signal, or poll with a deadline in a function `wait_…`";
            TidyFinding::at(Severity::Refuse, &source.path, at, text.to_owned())
        })
        .collect()
}

pub(crate) fn unwraps(sources: &[Source]) -> Vec<TidyFinding> {
    let mut places = Vec::new();
    let mut lines = 0_usize;
    for source in sources {
        for (at, line) in source.code.lines().enumerate().filter(|(at, _)| !source.is_test(*at)) {
            lines += 1;
            let calls = line.matches(".unwrap()").count() + line.matches(".expect(").count();
            places.extend((0..calls).map(|_| (source.path.as_str(), at)));
        }
    }
    let allowed = lines.div_ceil(1_000) * UNWRAPS_PER_1000;
    if places.len() <= allowed {
        return Vec::new();
    }
    let text = format!("one of {} unwrap/expect calls outside of tests; {allowed} are allowed", places.len());
    places.into_iter().map(|(path, at)| TidyFinding::at(Severity::Refuse, path, at, text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeping_test_is_refused() {
        let found = sleeping_tests(&Source::new("tests/a.rs", "async fn a() {\n    tokio::time::sleep(d).await;\n}\n"));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, Some(1));
    }

    #[test]
    fn paused_time_and_polling_with_a_deadline_are_fine() {
        let paused = "#[tokio::test(start_paused = true)]\nasync fn a() {\n    tokio::time::sleep(d).await;\n}\n";
        assert!(sleeping_tests(&Source::new("tests/a.rs", paused)).is_empty());
        let advanced = "async fn a() {\n    tokio::time::advance(d).await;\n    tokio::time::sleep(d).await;\n}\n";
        assert!(sleeping_tests(&Source::new("tests/a.rs", advanced)).is_empty());
        let polling = "async fn wait_until(d: Instant) {\n    tokio::time::sleep(d).await;\n}\n";
        assert!(sleeping_tests(&Source::new("tests/a.rs", polling)).is_empty());
    }

    #[test]
    fn code_outside_of_tests_is_not_a_sleeping_test() {
        assert!(sleeping_tests(&Source::new("src/a.rs", "fn a() {\n    tokio::time::sleep(d).await;\n}\n")).is_empty());
    }

    #[test]
    fn a_few_unwraps_are_allowed_more_are_not() {
        let few = Source::new("src/a.rs", "a.unwrap();\nb.expect(\"\");\n");
        assert!(unwraps(&[few]).is_empty());
        let many = Source::new("src/a.rs", "a.unwrap();\nb.expect(\"\");\nc.unwrap();\n");
        assert_eq!(unwraps(&[many]).len(), 3);
        let tests = Source::new("tests/a.rs", "a.unwrap();\n".repeat(9));
        assert!(unwraps(&[tests]).is_empty());
    }
}

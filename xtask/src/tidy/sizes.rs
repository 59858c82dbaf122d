//! How long files and functions are: warnings from the aim on, refusals at the hard edge.

use super::functions::functions;
use super::source::Source;
use super::{Severity, TidyFinding};

const FILE_AIM: usize = 350;
const FILE_EDGE: usize = 800;
const FUNCTION_AIM: usize = 40;
const FUNCTION_EDGE: usize = 70;

pub(crate) fn check(source: &Source) -> Vec<TidyFinding> {
    let mut found = Vec::new();
    if let Some((severity, edge)) = judge(source.line_count(), FILE_AIM, FILE_EDGE) {
        let text = format!("file has {} lines; {edge}", source.line_count());
        found.push(TidyFinding::of_file(severity, &source.path, text));
    }
    for function in functions(source) {
        if let Some((severity, edge)) = judge(function.lines(), FUNCTION_AIM, FUNCTION_EDGE) {
            let text = format!("function `{}` has {} lines; {edge}", function.name, function.lines());
            found.push(TidyFinding::at(severity, &source.path, function.first, text));
        }
    }
    found
}

fn judge(lines: usize, aim: usize, edge: usize) -> Option<(Severity, String)> {
    if lines > edge {
        Some((Severity::Refuse, format!("the hard edge is {edge}")))
    } else if lines > aim {
        Some((Severity::Warn, format!("aim for {aim} or fewer")))
    } else {
        None
    }
}

/// Median, 90th percentile and maximum of files and functions outside of tests and in them.
pub(crate) fn table(sources: &[Source]) -> String {
    let files = sources.iter().map(|source| (source.test_file, source.line_count()));
    let lengths =
        sources.iter().flat_map(|source| functions(source).into_iter().map(|f| (source.is_test(f.first), f.lines())));
    let mut table = format!("{:<18}{:>7}{:>8}{:>6}{:>6}\n", "lines", "count", "median", "p90", "max");
    for (name, list) in [("file", files.collect::<Vec<_>>()), ("function", lengths.collect())] {
        for (place, wanted) in [("", false), (" in tests", true)] {
            let chosen = list.iter().filter(|(test, _)| *test == wanted).map(|(_, lines)| *lines).collect();
            table.push_str(&row(&format!("{name}{place}"), chosen));
        }
    }
    table
}

fn row(name: &str, mut lengths: Vec<usize>) -> String {
    lengths.sort_unstable();
    let at =
        |percent: usize| lengths.get((lengths.len() * percent / 100).min(lengths.len().saturating_sub(1))).unwrap_or(&0);
    format!("{name:<18}{:>7}{:>8}{:>6}{:>6}\n", lengths.len(), at(50), at(90), at(100))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn severities(lines: usize, wrap: bool) -> Vec<Severity> {
        let body = "    x();\n".repeat(lines);
        let text = if wrap { format!("fn a() {{\n{body}}}\n") } else { body };
        check(&Source::new("a.rs", text)).iter().map(|finding| finding.severity).collect()
    }

    #[test]
    fn long_files_are_warned_about_and_longer_ones_refused() {
        assert_eq!(severities(350, false), []);
        assert_eq!(severities(351, false), [Severity::Warn]);
        assert_eq!(severities(801, false), [Severity::Refuse]);
    }

    #[test]
    fn long_functions_are_warned_about_and_longer_ones_refused() {
        assert_eq!(severities(38, true), []);
        assert_eq!(severities(39, true), [Severity::Warn]);
        assert_eq!(severities(69, true), [Severity::Refuse]);
    }

    #[test]
    fn the_table_tells_tests_apart() {
        let sources = [Source::new("src/a.rs", "fn a() {\n}\n"), Source::new("tests/b.rs", "fn b() {\n\n\n}\n")];
        let table = table(&sources);
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["file", "1", "2", "2", "2"]);
        assert_eq!(rows[4], ["function", "in", "tests", "1", "4", "4", "4"]);
    }
}

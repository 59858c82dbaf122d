//! Errors of a configuration file, with positions.

use std::fmt;
use std::sync::Arc;

/// A file with more errors than this is the wrong file; further errors are only counted.
pub const ERRORS_MAX: usize = 100;

/// One error of a file, at the line that a person has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    pub file: Arc<str>,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    pub message: String,
    /// The known word closest to the refused one.
    pub suggestion: Option<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)?;
        match &self.suggestion {
            Some(word) => write!(f, "; did you mean {word:?}?"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ConfigError {}

/// A position in a file, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SourcePosition {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

/// Collects the errors of one file, so that all are reported at once.
pub(crate) struct ConfigReport {
    file: Arc<str>,
    errors: Vec<ConfigError>,
    /// How many further errors there are, and the position of the first.
    untold: Option<(SourcePosition, usize)>,
    /// The text is a stored one that was accepted before, so newer checks must not refuse it.
    stored: bool,
}

impl ConfigReport {
    pub(crate) fn new(file: &str) -> Self {
        Self { file: file.into(), errors: Vec::new(), untold: None, stored: false }
    }

    pub(crate) fn of_stored(file: &str) -> Self {
        Self { stored: true, ..Self::new(file) }
    }

    /// Refuses a value that can be read and has no use. A stored text may contain it, accepted by an earlier version; it
    /// keeps the meaning that it had.
    pub(crate) fn refuse_new(&mut self, at: SourcePosition, message: impl Into<String>) {
        if !self.stored {
            self.refuse(at, message);
        }
    }

    pub(crate) fn refuse(&mut self, at: SourcePosition, message: impl Into<String>) {
        self.push(at, message.into(), None);
    }

    /// Refuses `word` and suggests the known word closest to it.
    pub(crate) fn unknown<'a>(
        &mut self,
        at: SourcePosition,
        message: impl Into<String>,
        word: &str,
        known: impl IntoIterator<Item = &'a str>,
    ) {
        // Beyond the limit no suggestion is computed: comparing thousands of wrong words with thousands of known ones takes
        // too long.
        let suggestion = if self.errors.len() < ERRORS_MAX { nearest(word, known) } else { None };
        self.push(at, message.into(), suggestion);
    }

    fn push(&mut self, at: SourcePosition, message: String, suggestion: Option<String>) {
        if self.errors.len() < ERRORS_MAX {
            self.errors.push(ConfigError { file: self.file.clone(), line: at.line, column: at.column, message, suggestion });
        } else {
            self.untold.get_or_insert((at, 0)).1 += 1;
        }
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty()
    }

    /// The errors in the order of the file; if there are too many, the last one says how many are left out.
    pub(crate) fn into_errors(mut self) -> Vec<ConfigError> {
        self.errors.sort_by_key(|error| (error.line, error.column));
        if let Some((at, more)) = self.untold {
            let message = format!("{more} more faults are left out; mend the first {ERRORS_MAX} and check again");
            let (file, SourcePosition { line, column }) = (self.file, at);
            self.errors.push(ConfigError { file, line, column, message, suggestion: None });
        }
        self.errors
    }
}

/// The known word that differs in few letters, if there is one.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    known
        .into_iter()
        .map(|candidate| (edits(word, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate.to_owned())
}

/// The edit distance of two words: letters added, removed, changed or swapped with their neighbour.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = (0..=to.len()).collect();
    let mut last = None;
    for (i, c) in from.chars().enumerate() {
        let mut new = vec![i + 1];
        for (j, d) in to.iter().enumerate() {
            let swapped = j > 0 && last == Some(*d) && to[j - 1] == c;
            let by_swap = if swapped { older[j - 1] + 1 } else { usize::MAX };
            new.push((old[j] + usize::from(c != *d)).min(old[j + 1] + 1).min(new[j] + 1).min(by_swap));
        }
        older = std::mem::replace(&mut old, new);
        last = Some(c);
    }
    old[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let known = ["topics", "tenants", "when"];
        assert_eq!(nearest("topcis", known).as_deref(), Some("topics"));
        assert_eq!(nearest("tenant", known).as_deref(), Some("tenants"));
        assert_eq!(nearest("payload", known), None);
    }

    #[test]
    fn more_faults_than_anybody_reads_are_counted() {
        let mut report = ConfigReport::new("policy.yaml");
        for line in 1..=ERRORS_MAX + 23 {
            report.refuse(SourcePosition { line, column: 1 }, "wrong");
        }
        let errors = report.into_errors();
        assert_eq!(errors.len(), ERRORS_MAX + 1);
        let last = errors.last().map(ToString::to_string);
        let expected = "policy.yaml:101: 23 more faults are left out; mend the first 100 and check again";
        assert_eq!(last.as_deref(), Some(expected));
    }

    #[test]
    fn an_error_names_file_line_and_the_word_that_was_meant() {
        let mut report = ConfigReport::new("policy.yaml");
        report.unknown(SourcePosition { line: 12, column: 5 }, "unknown key \"topcis\" in match", "topcis", ["topics"]);
        assert_eq!(
            report.into_errors()[0].to_string(),
            "policy.yaml:12: unknown key \"topcis\" in match; did you mean \"topics\"?"
        );
    }
}

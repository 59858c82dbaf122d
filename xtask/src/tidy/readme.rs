//! The first page is read in a few minutes or not at all.

use super::{Severity, TidyFinding};

pub(crate) const README: &str = "README.md";
const WORDS_MAX: usize = 1_000;

pub(crate) fn check(readme: &str) -> Option<TidyFinding> {
    let words = readme.split_whitespace().count();
    let text = format!("the page has {words} words, {WORDS_MAX} are allowed; move something to docs/");
    (words > WORDS_MAX).then(|| TidyFinding::of_file(Severity::Refuse, README, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_first_page_is_refused() {
        assert!(check(&"word ".repeat(WORDS_MAX)).is_none());
        assert!(check(&"word ".repeat(WORDS_MAX + 1)).is_some());
    }
}

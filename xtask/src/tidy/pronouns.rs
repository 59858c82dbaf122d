//! Comments that name no subject: "nobody", "somebody", "whoever", "anybody", and "The same …" as first words.
//!
//! They cannot be found by grep and leave the reader to guess who is meant. There were 1,326 such words at the review; the number of
//! comment lines that still have one is recorded here and may only fall.

use super::source::Source;
use super::{Severity, TidyFinding};

/// Comment lines that have one of the words. Lower it with every one that is rewritten.
const LINES_MAX: usize = 166;
const WORDS: [&str; 4] = ["nobody", "somebody", "whoever", "anybody"];
const FIRST_WORDS: &str = "The same";
const HERE: &str = "xtask/src/tidy/pronouns.rs";

pub(crate) fn check(sources: &[Source]) -> Vec<TidyFinding> {
    judge(count(sources), LINES_MAX).into_iter().collect()
}

fn judge(lines: usize, max: usize) -> Option<TidyFinding> {
    let (severity, text) = match lines {
        more if more > max => (
            Severity::Refuse,
            format!(
                "{more} comment lines speak of nobody, somebody, whoever or anybody, or begin with \"The same\"; {max} are allowed. Name the subject"
            ),
        ),
        fewer if fewer < max => (Severity::Warn, format!("LINES_MAX is {max}; lower it to {fewer}")),
        _ => return None,
    };
    Some(TidyFinding::of_file(severity, HERE, text))
}

pub(crate) fn count(sources: &[Source]) -> usize {
    let others = sources.iter().filter(|source| source.path != HERE);
    others.flat_map(|source| source.comments.lines()).filter(|line| names_no_subject(line)).count()
}

fn names_no_subject(comment: &str) -> bool {
    let text = comment.trim_start().trim_start_matches(['/', '!', '*']).trim_start();
    let words = text.split(|c: char| !c.is_alphanumeric());
    text.starts_with(FIRST_WORDS) || words.map(str::to_lowercase).any(|word| WORDS.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_without_a_subject_are_counted_and_code_is_not() {
        let text =
            "// Whoever ended it.\n/// The same for calls.\n//! Nobody's.\n// The same again.\nlet nobody = \"somebody\";\n";
        assert_eq!(count(&[Source::new("a.rs", text)]), 4);
        assert_eq!(count(&[Source::new("a.rs", "// It is the same as before, for any body.\n")]), 0);
    }

    #[test]
    fn the_number_may_fall_and_not_rise() {
        assert_eq!(judge(3, 2).map(|finding| finding.severity), Some(Severity::Refuse));
        assert_eq!(judge(1, 2).map(|finding| finding.severity), Some(Severity::Warn));
        assert!(judge(2, 2).is_none());
    }
}

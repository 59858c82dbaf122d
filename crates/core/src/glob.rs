//! Topic patterns. `*` matches any text, dots included.

use crate::ids::{NAME_BYTES_MAX, NameError, check_name};

/// More stars make matching slower and no pattern clearer.
const STARS_MAX: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Glob {
    Exact(Box<str>),
    /// One star, at the end.
    Prefix(Box<str>),
    /// The texts between the stars, in order; an empty first or last text is a star at that end.
    Pieces(Vec<Box<str>>),
}

/// Why a pattern was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GlobError {
    #[error("must not contain {0:?}; topics have letters, digits and . _ - :, and * is the only wildcard")]
    Character(char),
    #[error("has two stars in a row; one is enough, it crosses dots")]
    DoubleStar,
    #[error("has more than {STARS_MAX} stars")]
    Stars,
    #[error("is longer than {NAME_BYTES_MAX} bytes")]
    TooLong,
    #[error("can match no topic: it {0}")]
    Name(NameError),
}

impl Glob {
    pub(crate) fn parse(text: &str) -> Result<Self, GlobError> {
        if text.len() > NAME_BYTES_MAX {
            return Err(GlobError::TooLong);
        }
        if text.contains("**") {
            return Err(GlobError::DoubleStar);
        }
        if !text.contains('*') {
            return check_name(text).map(|()| Self::Exact(text.into())).map_err(GlobError::from);
        }
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':' | '*');
        if let Some(c) = text.chars().find(|c| !allowed(*c)) {
            return Err(GlobError::Character(c));
        }
        let pieces: Vec<Box<str>> = text.split('*').map(Box::from).collect();
        match pieces.as_slice() {
            [prefix, last] if last.is_empty() => Ok(Self::Prefix(prefix.clone())),
            pieces if pieces.len() > STARS_MAX + 1 => Err(GlobError::Stars),
            _ => Ok(Self::Pieces(pieces)),
        }
    }

    /// The pattern that matches any text.
    pub(crate) fn everything() -> Self {
        Self::Prefix("".into())
    }

    pub(crate) fn matches(&self, topic: &str) -> bool {
        match self {
            Self::Exact(name) => **name == *topic,
            Self::Prefix(prefix) => topic.starts_with(&**prefix),
            Self::Pieces(pieces) => pieces_match(pieces, topic),
        }
    }

    /// The text that every match begins with.
    pub(crate) fn prefix(&self) -> &str {
        match self {
            Self::Exact(text) | Self::Prefix(text) => text,
            Self::Pieces(pieces) => pieces.first().map_or("", |piece| piece),
        }
    }
}

impl From<NameError> for GlobError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Character(c) => Self::Character(c),
            NameError::TooLong => Self::TooLong,
            other => Self::Name(other),
        }
    }
}

/// The first and last piece are anchored. Each piece between is matched at its first position, which leaves most text to the
/// others.
fn pieces_match(pieces: &[Box<str>], topic: &str) -> bool {
    let [first, middle @ .., last] = pieces else { return false };
    let Some(mut rest) = topic.strip_prefix(&**first) else { return false };
    for piece in middle {
        let Some(found) = rest.find(&**piece) else { return false };
        rest = &rest[found + piece.len()..];
    }
    rest.ends_with(&**last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_crosses_dots() {
        for (glob, topic, matched) in [
            ("job.a", "job.a", true),
            ("job.a", "job.a.b", false),
            ("job.*", "job.a.b", true),
            ("job.*", "job.", true),
            ("job.*", "jobs", false),
            ("*", "anything", true),
            ("*.delete", "db.table.delete", true),
            ("*.delete", "delete", false),
            ("a.*.z", "a.b.c.z", true),
            ("a.*.z", "a.z", false),
            ("a*b*b", "ab", false),
            ("a*b*b", "abb", true),
            ("*x*", "axb", true),
        ] {
            assert_eq!(Glob::parse(glob).unwrap().matches(topic), matched, "{glob} {topic}");
        }
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        for (glob, error) in [
            ("job.[ab]", GlobError::Character('[')),
            ("job.?*", GlobError::Character('?')),
            ("job.**", GlobError::DoubleStar),
            ("job.", GlobError::Name(NameError::Edge)),
            ("a*b*c*d*e*f*g*h*i*j", GlobError::Stars),
        ] {
            assert_eq!(Glob::parse(glob), Err(error), "{glob}");
        }
        assert_eq!(Glob::parse(&"x".repeat(200)), Err(GlobError::TooLong));
    }
}

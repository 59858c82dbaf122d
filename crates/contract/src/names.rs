//! The rule for names that come from outside.

/// Longest id, topic, tenant or actor accepted from outside.
pub const NAME_BYTES_MAX: usize = 128;

/// Why a name from outside was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("must not be empty")]
    Empty,
    #[error("must be at most {NAME_BYTES_MAX} bytes long")]
    TooLong,
    #[error("must not contain {0:?}; allowed are letters, digits and . _ - :")]
    Character(char),
    #[error("must start and end with a letter or a digit")]
    Edge,
}

/// The one rule for ids, topics, tenants and actors that come from outside.
pub fn check_name(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    if text.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong);
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | ':');
    if let Some(c) = text.chars().find(|c| !allowed(*c)) {
        return Err(NameError::Character(c));
    }
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    if edge(text.chars().next()) && edge(text.chars().last()) { Ok(()) } else { Err(NameError::Edge) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_checked_at_the_door() {
        assert_eq!(check_name("job.echo"), Ok(()));
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name("a b"), Err(NameError::Character(' ')));
        assert_eq!(check_name(".a"), Err(NameError::Edge));
        assert_eq!(check_name(&"x".repeat(129)), Err(NameError::TooLong));
    }
}

//! The keys that one kind of map may have.

/// A map of the language and the keys it may have.
pub(crate) struct Section {
    /// As error texts call it.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
}

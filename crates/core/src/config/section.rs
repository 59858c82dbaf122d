//! The keys that one kind of map may have.

/// A map of a configuration language and its keys.
pub(crate) struct Section {
    /// Its name in error texts.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static [&'static str],
}

//! A word of a stored row that this version does not know.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A name that a newer version stored: of a kind of event, a reason, a decision. What it names is copied everywhere, so it is held in
/// place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnknownName {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl UnknownName {
    /// Twice the longest name there is.
    pub const MAX: usize = 40;

    pub fn as_str(&self) -> &str {
        // It was made from a text of this length.
        str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl TryFrom<&str> for UnknownName {
    type Error = &'static str;

    fn try_from(name: &str) -> Result<Self, Self::Error> {
        const TOO_LONG: &str = "the name has more than 40 bytes";
        let mut bytes = [0; Self::MAX];
        let length = u8::try_from(name.len()).map_err(|_| TOO_LONG)?;
        bytes.get_mut(..name.len()).ok_or(TOO_LONG)?.copy_from_slice(name.as_bytes());
        Ok(Self { bytes, length })
    }
}

impl fmt::Debug for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for UnknownName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for UnknownName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        Self::try_from(&*name).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_as_it_is_up_to_its_length() {
        for name in ["", "a", "ä", &"x".repeat(UnknownName::MAX)] {
            assert_eq!(UnknownName::try_from(name).unwrap().as_str(), name);
        }
        for length in [UnknownName::MAX + 1, 300] {
            assert!(UnknownName::try_from(&*"x".repeat(length)).is_err());
        }
    }
}

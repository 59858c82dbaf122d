//! Ids of traces and spans.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::hex;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $bytes:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name([u8; $bytes]);

        impl $name {
            /// All zeros mean that there is none.
            pub fn new(bytes: [u8; $bytes]) -> Option<Self> {
                (bytes != [0; $bytes]).then_some(Self(bytes))
            }

            /// Reads hexadecimal digits, in lower case as the standard has them.
            pub fn parse(text: &str) -> Option<Self> {
                if text.contains(|c: char| c.is_ascii_uppercase()) {
                    return None;
                }
                Self::new(hex::read(text)?)
            }

            /// Derives the id from the parts, so that every process derives equal ids.
            pub fn of(parts: &[&str]) -> Self {
                let mut digest = Sha256::new();
                for part in parts {
                    digest.update(part.len().to_be_bytes());
                    digest.update(part);
                }
                let hash = digest.finalize();
                let mut bytes = [0; $bytes];
                bytes.copy_from_slice(&hash[..$bytes]);
                // One in 2^64 would be no id at all.
                bytes[0] |= u8::from(bytes == [0; $bytes]);
                Self(bytes)
            }

            pub const fn bytes(&self) -> &[u8; $bytes] {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&hex::write(&self.0))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }
    };
}

id!(
    /// Everything that came of one request.
    TraceId, 16
);
id!(
    /// One piece of work in a trace.
    SpanId, 8
);

impl TraceId {
    /// Where the trace stands between 0 and 1: the same in every process, so that all of them take the same ones.
    #[expect(clippy::cast_precision_loss, reason = "a place on a line, not a count")]
    pub fn place(&self) -> f64 {
        let mut low = [0; 8];
        low.copy_from_slice(&self.0[8..]);
        u64::from_be_bytes(low) as f64 / u64::MAX as f64
    }
}

impl SpanId {
    /// Part of another span; `what` must be told once about it.
    #[must_use]
    pub fn within(self, what: &str) -> Self {
        Self::of(&["part", &self.to_string(), what])
    }
}

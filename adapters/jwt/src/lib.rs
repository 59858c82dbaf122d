//! Bearer tokens of an outside issuer: JSON Web Tokens, checked with keys from a file or from the issuer's key address.
//!
//! The key decides what is accepted, never the token: every key has exactly one algorithm, a token is verified with that
//! one, and a header with another algorithm is refused. The algorithms are HS256, RS256, ES256 and EdDSA.
//!
//! # The claims
//! | claim | meaning |
//! |---|---|
//! | `iss`, `aud` | must be the configured issuer, and have the configured audience among them |
//! | `exp` | required; `nbf` and `iat` are kept to where they are there, all three with the leeway |
//! | `sub` | the actor; a plain name |
//! | `actor_type` | what kind of actor; optional |
//! | `tenant` | the tenant; `*` is all of them |
//! | `roles` | a list, or words between spaces; at least one, and only known ones |
//! | `pools` | the pools a worker may belong to; left out: every pool |
//! | `payloads` | whether payloads may be seen; left out: no |

mod claims;
mod fetch;
mod file;
mod head;
mod key;
mod keyset;
mod remote;
mod settings;
mod tokens;

pub use keyset::KeysError;
pub use settings::{JwtSettings, KeySource, SettingsError};
pub use tokens::JwtTokens;

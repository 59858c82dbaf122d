//! Bearer tokens of an external issuer.

use async_trait::async_trait;
use lockgate_core::access::Identity;
use lockgate_core::time::Timestamp;

#[async_trait]
pub trait Tokens: Send + Sync {
    /// The identity that a token proves, if it can be verified now.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Identity, TokenError>;
}

/// Why a token is refused. The texts never contain any part of the token.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token is not one: {0}")]
    Malformed(&'static str),
    #[error("the token is signed with a key or an algorithm that is not trusted here")]
    Untrusted,
    #[error("the token has expired, or is not valid yet")]
    Expired,
    #[error("the token was issued for somebody else: its {0} is not ours")]
    NotForUs(&'static str),
    /// The claim that must name the bearer, and what is wrong with it.
    #[error("the token does not say who its bearer is: {0}")]
    Nameless(String),
    /// Keys could not be fetched; a retry may help.
    #[error("the keys that tokens are checked with cannot be read: {0}")]
    Unavailable(String),
}

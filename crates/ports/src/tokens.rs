//! Bearer tokens of an external issuer.

use async_trait::async_trait;
use lockgate_core::access::Identity;
use lockgate_core::time::Timestamp;

#[async_trait]
pub trait Tokens: Send + Sync {
    /// Who a token says its bearer is, if it can be believed now.
    async fn verify(&self, token: &str, now: Timestamp) -> Result<Identity, TokenError>;
}

/// Why a token is not believed. Texts never have any of the token in them.
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
    /// The claim that must say it, and what is wrong with it.
    #[error("the token does not say who its bearer is: {0}")]
    Nameless(String),
    /// Keys could not be fetched; another try may help.
    #[error("the keys that tokens are checked with cannot be read: {0}")]
    Unavailable(String),
}

//! The one place where it is decided who comes in, and what for: gRPC, REST and streams alike.
//!
//! A request is let through with an [`Authenticated`] among its extensions, which says on whose behalf it acts. What has no entry
//! in the table of needs is not let through at all.

mod authenticator;
mod brake;
mod leash;
mod needs;
mod refusal;

use std::fmt;
use std::sync::Arc;

use lockgate_core::access::{Credential, DigestKey, Identity};
use lockgate_core::request::Caller;
use lockgate_ports::Tokens;

pub(crate) use authenticator::Authenticator;
pub(crate) use leash::{Beside, LOOK_EVERY};
pub(crate) use needs::{comes_on, service_of};
pub(crate) use refusal::AuthRefusal;

/// Who is let in.
#[derive(Clone, Debug, Default)]
pub enum AccessMode {
    /// Every client that can connect, under the name it gives.
    #[default]
    Open,
    /// Those with a credential.
    Closed(Arc<Entrance>),
}

/// What credentials are checked against.
#[derive(Clone)]
pub struct Entrance {
    pub digest: DigestKey,
    /// Bearer tokens of an external issuer, if it is trusted.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Of the worker inside this process. It lives and dies with the process, so it is stored nowhere.
    pub inside: Option<Credential>,
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("tokens", &self.tokens.is_some()).finish_non_exhaustive()
    }
}

/// The request was not authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unguarded;

/// A caller whose credential was checked, and that may make this call.
#[derive(Clone, Debug)]
pub(crate) struct Authenticated {
    pub(crate) identity: Identity,
    pub(crate) caller: Caller,
}

//! The one place where it is decided who comes in, and what for: gRPC, REST and streams alike.
//!
//! A request is let through with an [`Admitted`] among its extensions, which says on whose behalf it acts. What has no entry
//! in the table of needs is not let through at all.

mod brake;
mod gate;
mod leash;
mod needs;
mod refusal;

use std::fmt;
use std::sync::Arc;

use lockgate_core::access::{Credential, DigestKey, Identity};
use lockgate_core::request::Caller;
use lockgate_ports::Tokens;

pub(crate) use gate::Gate;
pub(crate) use leash::{Beside, LOOK_EVERY};
pub(crate) use needs::comes_on;
pub(crate) use refusal::Refusal;

/// Who is let in.
#[derive(Clone, Debug, Default)]
pub enum Access {
    /// Whoever can connect, under the name they give.
    #[default]
    Open,
    /// Those with a credential.
    Closed(Arc<Entrance>),
}

/// What credentials are checked against.
#[derive(Clone)]
pub struct Entrance {
    pub digest: DigestKey,
    /// Bearer tokens that somebody else issued, if they are trusted.
    pub tokens: Option<Arc<dyn Tokens>>,
    /// Of the worker inside this process. It lives and dies with the process, so it is stored nowhere.
    pub inside: Option<Credential>,
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("tokens", &self.tokens.is_some()).finish_non_exhaustive()
    }
}

/// Nobody was asked for a credential.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unguarded;

/// Somebody whose credential was checked, and who may make this call.
#[derive(Clone, Debug)]
pub(crate) struct Admitted {
    pub(crate) identity: Identity,
    pub(crate) caller: Caller,
}

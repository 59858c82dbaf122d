//! Places for calls, a share of them for each caller, and answers that keep theirs for as long as they go on.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use http::{Extensions, Response};
use lockgate_core::access::CredentialId;
use lockgate_core::ids::ActorId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::CallRefusal;
use crate::answers::kept_until_the_end;
use crate::auth::Authenticated;
use crate::peer::PeerAddress;
use crate::shares::{PerClientLimit, SharePermit};

/// One caller may have one in so many places: calls that never end, of one credential or from one network, must leave most
/// of the room to others.
const SHARE_OF: usize = 4;

/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct CallPool {
    places: Arc<Semaphore>,
    /// None: first come, first served.
    shares: Option<Arc<PerClientLimit<Who>>>,
}

/// Whose calls are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Tokens of one issuer come in by the same means, so the actor is named too.
    Known(CredentialId, ActorId),
    /// Without authentication.
    From(IpAddr),
}

/// Free again when dropped.
pub(super) struct CallPermit {
    _part: Option<SharePermit<Who>>,
    _permit: OwnedSemaphorePermit,
}

impl Who {
    /// By what the gate has put on a request. None if the caller is unknown: no share is counted then.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        match extensions.get::<Authenticated>() {
            Some(Authenticated { identity, .. }) => Some(Self::Known(identity.via.clone(), identity.actor.clone())),
            None => extensions.get::<PeerAddress>()?.network().map(Self::From),
        }
    }
}

impl CallPool {
    pub(super) fn new(max: usize) -> Self {
        Self { shares: Some(PerClientLimit::new(max / SHARE_OF)), ..Self::unshared(max) }
    }

    pub(super) fn unshared(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max)), shares: None }
    }

    pub(super) fn enter(&self, who: Option<Who>) -> Result<CallPermit, CallRefusal> {
        // First, which bounds how many callers are counted.
        let permit = self.places.clone().try_acquire_owned().map_err(|_| CallRefusal::Crowded)?;
        let of = self.shares.as_ref().zip(who);
        let part = of.map(|(shares, who)| shares.take(who).ok_or(CallRefusal::OwnShare)).transpose()?;
        Ok(CallPermit { _part: part, _permit: permit })
    }
}

impl CallPermit {
    /// Held until the whole answer has been given, or the client is gone.
    pub(super) fn until_the_end_of(self, response: Response<Body>) -> Response<Body> {
        kept_until_the_end(response, self)
    }
}

//! Places for calls, a share of them for each caller, and answers that keep theirs for as long as they go on.

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::Body;
use http::{Extensions, Response};
use lockgate_core::access::CredentialId;
use lockgate_core::ids::ActorId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Unanswered;
use crate::answers::kept_until_the_end;
use crate::auth::Admitted;
use crate::peer::PeerAddress;
use crate::shares::{Part, Shares};

/// One caller may have one in so many places: calls that never end, of one credential or from one network, must leave most
/// of the room to others.
const SHARE_OF: usize = 4;

/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Room {
    places: Arc<Semaphore>,
    /// None: whoever comes first has it.
    shares: Option<Arc<Shares<Who>>>,
}

/// Whose calls are counted together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Who {
    /// Tokens of one issuer come in by the same means, so the actor is named too.
    Known(CredentialId, ActorId),
    /// Where nobody was asked who they are.
    From(IpAddr),
}

/// Free again when dropped.
pub(super) struct Place {
    _part: Option<Part<Who>>,
    _permit: OwnedSemaphorePermit,
}

impl Who {
    /// By what the gate has put on a request. None if it could be anybody: no share is counted then.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        match extensions.get::<Admitted>() {
            Some(Admitted { identity, .. }) => Some(Self::Known(identity.via.clone(), identity.actor.clone())),
            None => extensions.get::<PeerAddress>()?.network().map(Self::From),
        }
    }
}

impl Room {
    pub(super) fn new(max: usize) -> Self {
        Self { shares: Some(Shares::new(max / SHARE_OF)), ..Self::unshared(max) }
    }

    pub(super) fn unshared(max: usize) -> Self {
        Self { places: Arc::new(Semaphore::new(max)), shares: None }
    }

    pub(super) fn enter(&self, who: Option<Who>) -> Result<Place, Unanswered> {
        // First, which bounds how many callers are counted.
        let permit = self.places.clone().try_acquire_owned().map_err(|_| Unanswered::Crowded)?;
        let of = self.shares.as_ref().zip(who);
        let part = of.map(|(shares, who)| shares.take(who).ok_or(Unanswered::OwnShare)).transpose()?;
        Ok(Place { _part: part, _permit: permit })
    }
}

impl Place {
    /// Held until the whole answer has been given, or nobody listens any more.
    pub(super) fn until_the_end_of(self, response: Response<Body>) -> Response<Body> {
        kept_until_the_end(response, self)
    }
}

//! Credentials that were read a moment ago. A call must not cost a read of the Store, and a revoked key must soon be nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::ids::ActorId;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Credentials, StoreError};
use parking_lot::Mutex;

/// What another process did to a credential is known here after this.
pub(crate) const FRESH_FOR: Duration = Duration::from_secs(5);
/// What was read may still count while the Store is away.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Ids that nobody has are remembered too, so strangers can fill the ring: then it begins anew.
const KNOWN_MAX: usize = 10_000;
/// Of one credential one refusal in this time is recorded; all are counted.
const NOTED_EVERY: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Keyring {
    known: Mutex<BTreeMap<CredentialId, Known>>,
    /// When a refusal was last recorded.
    noted: Mutex<BTreeMap<(CredentialId, ActorId), Timestamp>>,
}

#[derive(Clone)]
struct Known {
    credential: Option<Credential>,
    read_at: Timestamp,
}

impl Keyring {
    /// The credential of this id as it was read at most [`FRESH_FOR`] ago.
    pub(crate) async fn find<S: Credentials + ?Sized>(
        &self,
        store: &S,
        id: &CredentialId,
        now: Timestamp,
    ) -> Result<Option<Credential>, StoreError> {
        let known = self.known.lock().get(id).cloned();
        // A clock that was set back makes everything look fresh for ever.
        let age = |known: &Known| if known.read_at > now { GOOD_FOR } else { now.since(known.read_at) };
        if let Some(known) = known.as_ref().filter(|known| age(known) < FRESH_FOR) {
            return Ok(known.credential.clone());
        }
        match (store.credential(id).await, known) {
            (Ok(credential), _) => {
                self.learn(id, credential.clone(), now);
                Ok(credential)
            }
            (Err(_), Some(known)) if age(&known) < GOOD_FOR => Ok(known.credential),
            (Err(error), _) => Err(error),
        }
    }

    /// Whether a refusal is to be recorded: the audit trail is not for the refused to fill.
    pub(crate) fn notes(&self, who: (CredentialId, ActorId), now: Timestamp) -> bool {
        let mut noted = self.noted.lock();
        if noted.get(&who).is_some_and(|last| now.since(*last) < NOTED_EVERY && *last <= now) {
            return false;
        }
        if noted.len() >= KNOWN_MAX {
            noted.clear();
        }
        noted.insert(who, now);
        true
    }

    pub(crate) fn learn(&self, id: &CredentialId, credential: Option<Credential>, now: Timestamp) {
        let mut known = self.known.lock();
        if known.len() >= KNOWN_MAX && !known.contains_key(id) {
            known.clear();
        }
        // C-1: a read that began before a revocation may come back after it.
        let ended = known.get(id).and_then(|known| known.credential.as_ref()?.ends_at);
        let credential = credential.map(|mut credential| {
            credential.ends_at = [credential.ends_at, ended].into_iter().flatten().min();
            credential
        });
        known.insert(id.clone(), Known { credential, read_at: now });
    }
}

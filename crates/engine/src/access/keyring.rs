//! Credentials that were read a moment ago. A call must not cost a read of the Store, and a revoked key must soon be nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::ids::ActorId;
use lockgate_core::time::Timestamp;
use lockgate_ports::{Credentials, StoreError};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// What another process did to a credential is known here after this.
pub(crate) const FRESH_FOR: Duration = Duration::from_secs(5);
/// What was read may still count while the Store is away.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Ids that nobody has are remembered too, so strangers can fill the ring: then it begins anew.
const KNOWN_MAX: usize = 10_000;
/// Credentials read from the Store at once: whoever knocks is not let in yet, and counts nowhere else.
const READS_MAX: usize = 256;
/// Of one credential one refusal in this time is recorded; all are counted.
const NOTED_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Keyring {
    known: Mutex<BTreeMap<CredentialId, Known>>,
    /// When a refusal was last recorded.
    noted: Mutex<BTreeMap<(CredentialId, ActorId), Timestamp>>,
    reads: Semaphore,
}

impl Default for Keyring {
    fn default() -> Self {
        Self { known: Mutex::default(), noted: Mutex::default(), reads: Semaphore::new(READS_MAX) }
    }
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
        let read = match self.reads.try_acquire() {
            Ok(_place) => store.credential(id).await,
            Err(_) => Err(StoreError::Unavailable("too many credentials are being looked up".into())),
        };
        match (read, known) {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use lockgate_core::audit::AuditEntry;

    use super::*;

    /// A Store that hangs.
    struct Stuck;

    #[async_trait]
    impl Credentials for Stuck {
        async fn add_credential(&self, _: Credential, _: AuditEntry) -> Result<bool, StoreError> {
            std::future::pending().await
        }

        async fn credential(&self, _: &CredentialId) -> Result<Option<Credential>, StoreError> {
            std::future::pending().await
        }

        async fn credentials(&self, _: Option<&CredentialId>, _: usize) -> Result<Vec<Credential>, StoreError> {
            std::future::pending().await
        }

        async fn end_credential(
            &self,
            _: &CredentialId,
            _: Timestamp,
            _: AuditEntry,
        ) -> Result<Option<Credential>, StoreError> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn while_the_store_hangs_so_many_are_looked_up_and_others_are_told_at_once() {
        let (ring, now) = (Arc::new(Keyring::default()), Timestamp::from_millis(1_000_000));
        let known = CredentialId::from("known");
        ring.learn(&known, None, now);
        let knocking: Vec<_> = (0..READS_MAX)
            .map(|n| {
                let ring = ring.clone();
                tokio::spawn(async move { ring.find(&Stuck, &CredentialId::from(format!("k{n}").as_str()), now).await })
            })
            .collect();
        while ring.reads.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(ring.find(&Stuck, &"one-more".into(), now).await.is_err());
        let nobody = |found: Result<Option<Credential>, StoreError>| found.is_ok_and(|found| found.is_none());
        assert!(nobody(ring.find(&Stuck, &known, now).await), "what is fresh needs no read");
        assert!(nobody(ring.find(&Stuck, &known, now + FRESH_FOR).await), "nor does what is still good");
        knocking.into_iter().for_each(|knock| knock.abort());
    }
}

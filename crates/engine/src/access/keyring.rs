//! Credentials that were read a moment ago. A call must not cost a read of the Store, and a revoked key must soon be nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use lockgate_core::access::{Credential, CredentialId};
use lockgate_core::ids::ActorId;
use lockgate_core::time::Timestamp;
use lockgate_ports::{CredentialStore, StoreError};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// What another process did to a credential is known here after this.
pub(crate) const FRESH_FOR: Duration = Duration::from_secs(5);
/// What was read may still count while the Store is away.
const GOOD_FOR: Duration = Duration::from_secs(60);
/// Credentials remembered. When there are more, those that no longer count go first.
const KNOWN_MAX: usize = 10_000;
/// Ids that nobody has, remembered so that asking for one again costs no read. Strangers invent as many as they like, so
/// these have a place of their own: when it is full it begins anew, and no credential is forgotten over it.
const MISSING_MAX: usize = 10_000;
/// Credentials read from the Store at once: whoever knocks is not let in yet, and counts nowhere else.
const READS_MAX: usize = 256;
/// Of one credential one refusal in this time is recorded; all are counted.
const NOTED_EVERY: Duration = Duration::from_secs(60);

pub(crate) struct Keyring {
    ring: Mutex<CredentialCache>,
    /// When a refusal was last recorded.
    noted: Mutex<BTreeMap<(CredentialId, ActorId), Timestamp>>,
    reads: Semaphore,
}

impl Default for Keyring {
    fn default() -> Self {
        Self { ring: Mutex::default(), noted: Mutex::default(), reads: Semaphore::new(READS_MAX) }
    }
}

#[derive(Default)]
struct CredentialCache {
    found: BTreeMap<CredentialId, CachedCredential>,
    missing: BTreeMap<CredentialId, CachedCredential>,
}

#[derive(Clone)]
struct CachedCredential {
    credential: Option<Credential>,
    read_at: Timestamp,
}

impl CachedCredential {
    /// A clock that was set back would make everything look fresh for ever.
    fn age(&self, now: Timestamp) -> Duration {
        if self.read_at > now { GOOD_FOR } else { now.since(self.read_at) }
    }
}

impl CredentialCache {
    fn recall(&self, id: &CredentialId) -> Option<&CachedCredential> {
        self.found.get(id).or_else(|| self.missing.get(id))
    }

    fn keep(&mut self, id: &CredentialId, known: CachedCredential, now: Timestamp) {
        if known.credential.is_none() {
            self.found.remove(id);
            if self.missing.len() >= MISSING_MAX && !self.missing.contains_key(id) {
                self.missing.clear();
            }
            self.missing.insert(id.clone(), known);
            return;
        }
        self.missing.remove(id);
        if self.found.len() >= KNOWN_MAX && !self.found.contains_key(id) {
            self.found.retain(|_, known| known.age(now) < GOOD_FOR);
            // Looking through all of them must stay rare.
            if self.found.len() > KNOWN_MAX / 2 {
                self.found.clear();
            }
        }
        self.found.insert(id.clone(), known);
    }
}

impl Keyring {
    /// The credential of this id as it was read at most [`FRESH_FOR`] ago. `may_look` is asked before an id is looked up
    /// that is no credential's as far as is known here.
    pub(crate) async fn find<S, E>(
        &self,
        store: &S,
        id: &CredentialId,
        now: Timestamp,
        may_look: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Credential>, E>
    where
        S: CredentialStore + ?Sized,
        E: From<StoreError>,
    {
        let known = self.ring.lock().recall(id).cloned();
        if let Some(known) = known.as_ref().filter(|known| known.age(now) < FRESH_FOR) {
            return Ok(known.credential.clone());
        }
        if known.as_ref().is_none_or(|known| known.credential.is_none()) {
            may_look()?;
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
            (Err(_), Some(known)) if known.age(now) < GOOD_FOR => Ok(known.credential),
            (Err(error), _) => Err(error.into()),
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
        let mut ring = self.ring.lock();
        // C-1: a read that began before a revocation may come back after it.
        let ended = ring.found.get(id).and_then(|known| known.credential.as_ref()?.ends_at);
        let credential = credential.map(|mut credential| {
            credential.ends_at = [credential.ends_at, ended].into_iter().flatten().min();
            credential
        });
        ring.keep(id, CachedCredential { credential, read_at: now }, now);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use async_trait::async_trait;
    use lockgate_core::access::{CredentialKind, Grant, Reach};
    use lockgate_core::audit::AuditEntry;
    use lockgate_ports::store::GoesOn;

    use super::*;

    fn credential(id: &CredentialId) -> Credential {
        Credential {
            id: id.clone(),
            kind: CredentialKind::Certificate,
            actor: "somebody".into(),
            actor_type: None,
            grant: Grant { reach: Reach::Everyone, roles: Default::default(), pools: Default::default(), payloads: false },
            created_at: Timestamp::from_millis(0),
            created_by: "admin".into(),
            ends_at: None,
        }
    }

    fn anybody() -> Result<(), StoreError> {
        Ok(())
    }

    fn nobody_who_guesses() -> Result<(), StoreError> {
        Err(StoreError::Unavailable("held back".into()))
    }

    /// A Store that hangs.
    struct Stuck;

    #[async_trait]
    impl CredentialStore for Stuck {
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
            _: Option<GoesOn>,
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
                let id = CredentialId::from(format!("k{n}").as_str());
                tokio::spawn(async move { ring.find(&Stuck, &id, now, anybody).await })
            })
            .collect();
        while ring.reads.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert!(ring.find(&Stuck, &"one-more".into(), now, anybody).await.is_err());
        let nobody = |found: Result<Option<Credential>, StoreError>| found.is_ok_and(|found| found.is_none());
        assert!(nobody(ring.find(&Stuck, &known, now, anybody).await), "what is fresh needs no read");
        assert!(nobody(ring.find(&Stuck, &known, now + FRESH_FOR, anybody).await), "nor does what is still good");
        knocking.into_iter().for_each(|knock| knock.abort());
    }

    #[tokio::test]
    async fn ids_that_nobody_has_do_not_make_good_credentials_forgotten() {
        let (ring, now) = (Keyring::default(), Timestamp::from_millis(1_000_000));
        let good = CredentialId::from("good");
        ring.learn(&good, Some(credential(&good)), now);
        for n in 0..2 * MISSING_MAX {
            ring.learn(&CredentialId::from(format!("invented-{n}").as_str()), None, now);
        }
        assert!(ring.ring.lock().missing.len() <= MISSING_MAX);
        let found = ring.find(&Stuck, &good, now, nobody_who_guesses).await;
        assert_eq!(found.expect("known"), Some(credential(&good)));
        let _all = ring.reads.acquire_many(u32::try_from(READS_MAX).expect("small")).await.expect("open");
        let found = ring.find(&Stuck, &good, now + FRESH_FOR, nobody_who_guesses).await;
        assert_eq!(found.expect("known while the Store is away"), Some(credential(&good)), "nor is it held back");
    }

    #[tokio::test]
    async fn an_unknown_id_is_looked_up_only_if_it_may_be() {
        let (ring, now) = (Keyring::default(), Timestamp::from_millis(1_000_000));
        let refused = ring.find(&Stuck, &"unknown".into(), now, nobody_who_guesses).await;
        assert!(refused.is_err_and(|error| error.to_string().contains("held back")), "without a read, which would hang");
        ring.learn(&"missing".into(), None, now);
        assert!(ring.find(&Stuck, &"missing".into(), now + FRESH_FOR, nobody_who_guesses).await.is_err());
        assert_eq!(ring.find(&Stuck, &"missing".into(), now, nobody_who_guesses).await.expect("known"), None);
    }

    #[test]
    fn more_credentials_than_are_remembered_take_the_place_of_old_ones() {
        let (ring, now) = (Keyring::default(), Timestamp::from_millis(1_000_000));
        for n in 0..KNOWN_MAX {
            let id = CredentialId::from(format!("old-{n}").as_str());
            ring.learn(&id, Some(credential(&id)), now);
        }
        let (one, two) = (CredentialId::from("one"), CredentialId::from("two"));
        ring.learn(&one, Some(credential(&one)), now + GOOD_FOR);
        ring.learn(&two, Some(credential(&two)), now + GOOD_FOR);
        assert_eq!(ring.ring.lock().found.len(), 2);
    }
}

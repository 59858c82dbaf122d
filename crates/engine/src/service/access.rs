//! Credentials: who is let in, and who decides about it.

use std::sync::Arc;
use std::time::Duration;

use lockgate_core::access::{ApiKey, Credential, CredentialId, CredentialKind, DigestKey, Grant, Identity, Reach, Role};
use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::{ActorId, TenantId, check_name};
use lockgate_core::request::{FieldError, Json};
use lockgate_core::time::Timestamp;
use lockgate_ports::StoreError;
use lockgate_ports::store::GoesOn;

use super::to_the_end;
use crate::Engine;
use crate::error::ApiError;

/// What a new credential shall be.
#[derive(Clone, Debug)]
pub struct NewCredential {
    pub actor: String,
    pub actor_type: Option<String>,
    pub grant: Grant,
    pub lasts: Option<Duration>,
}

/// A key, shown this once.
#[derive(Clone, Debug)]
pub struct MadeKey {
    pub credential: Credential,
    pub key: ApiKey,
}

/// The longest subject of a certificate that is taken.
const SUBJECT_BYTES_MAX: usize = 512;
/// Administrators who end each other's keys: each conflict means that one of them was served.
const CONFLICTS_MAX: usize = 8;
/// A key that ends sooner is not one that stays, such as the old one of a rotation.
const LEFT_FOR: Duration = Duration::from_secs(24 * 3600);
const LAST_ADMIN: &str = "this is the last key of an administrator of every tenant that lasts for another day: without it no \
    caller could make keys. Make another with `lockgate auth key create NAME --role admin --everyone`, then revoke this one";
const PAGE_MAX: usize = 1_000;

impl Engine {
    /// Who comes in with a key; nobody if it is unknown, wrong or over. All three take the same time.
    pub async fn identify_key(&self, digest: &DigestKey, key: &ApiKey) -> Result<Option<Identity>, ApiError> {
        self.identify_key_if(digest, key, || Ok(())).await
    }

    /// The same. Whether an id that is no credential's as far as is known here may be looked up is asked first: ids are
    /// easily invented, and each costs a read of the Store.
    pub async fn identify_key_if<E: From<StoreError>>(
        &self,
        digest: &DigestKey,
        key: &ApiKey,
        may_look: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Identity>, E> {
        let found = self.credential(&key.id, may_look).await?;
        let stranger = CredentialKind::Key { digest: [0; 32] };
        let kind = found.as_ref().map_or(&stranger, |credential| &credential.kind);
        let fits = digest.matches(key, kind);
        Ok(found.filter(|_| fits).map(|credential| credential.identity()))
    }

    /// Who comes in with a certificate that the listener has verified.
    pub async fn identify_certificate(&self, subject: &str) -> Result<Option<Identity>, ApiError> {
        let found = self.credential(&CredentialId::from(subject), || Ok::<(), ApiError>(())).await?;
        let named = found.filter(|credential| credential.kind == CredentialKind::Certificate);
        Ok(named.map(|credential| credential.identity()))
    }

    /// The credential of this id, if it is good now.
    async fn credential<E: From<StoreError>>(
        &self,
        id: &CredentialId,
        may_look: impl FnOnce() -> Result<(), E>,
    ) -> Result<Option<Credential>, E> {
        let now = self.inner.ports.clock.now();
        let found = self.inner.keyring.find(&*self.inner.ports.store, id, now, may_look).await?;
        Ok(found.filter(|credential| credential.is_valid(now)))
    }

    /// Puts on record that somebody known was refused what they asked for.
    pub async fn note_refused(&self, identity: &Identity, asked: &str, why: &str) {
        let now = self.inner.ports.clock.now();
        if !self.inner.keyring.notes((identity.via.clone(), identity.actor.clone()), now) {
            return;
        }
        let tenant = match &identity.grant.reach {
            Reach::Tenant(tenant) => tenant.clone(),
            Reach::Everyone => TenantId::from("default"),
        };
        let detail = Json::trusted(serde_json::json!({ "via": identity.via, "why": why }).to_string());
        let (actor, subject) = (identity.actor.clone(), asked.into());
        let entry = AuditEntry { at: now, tenant, actor, action: AuditAction::AccessRefused, subject, detail };
        let entry = entry.seen_from(identity.source);
        if let Err(error) = self.inner.ports.store.append_audit(vec![entry]).await {
            tracing::warn!(%error, "audit entry of a denied call could not be written");
        }
    }

    /// Makes a key on behalf of somebody who may.
    pub async fn create_key(&self, by: &Identity, digest: &DigestKey, new: NewCredential) -> Result<MadeKey, ApiError> {
        let key = self.random_key();
        let kind = CredentialKind::Key { digest: digest.digest(&key) };
        let credential = self.checked(by, new, key.id.clone(), kind)?;
        self.keep(by, &credential).await?;
        Ok(MadeKey { credential, key })
    }

    /// Lets the bearer of a certificate in.
    pub async fn bind_certificate(&self, by: &Identity, subject: &str, new: NewCredential) -> Result<Credential, ApiError> {
        let named = ["uri:", "dns:", "cn:"].iter().find_map(|kind| subject.strip_prefix(kind));
        if named.is_none_or(str::is_empty) || subject.len() > SUBJECT_BYTES_MAX || subject.chars().any(char::is_control) {
            let text = format_args!("must be uri:, dns: or cn: and a name, at most {SUBJECT_BYTES_MAX} bytes in all");
            return Err(ApiError::invalid("subject", text));
        }
        let id = CredentialId::from(subject);
        let credential = self.checked(by, new, id, CredentialKind::Certificate)?;
        self.keep(by, &credential).await?;
        Ok(credential)
    }

    /// A new key for the same bearer. The old one goes on for a while, so that nobody is locked out meanwhile.
    pub async fn rotate_key(
        &self,
        by: &Identity,
        digest: &DigestKey,
        id: &CredentialId,
        overlap: Duration,
    ) -> Result<MadeKey, ApiError> {
        let now = self.inner.ports.clock.now();
        let old = self.manageable(by, id).await?;
        if !matches!(old.kind, CredentialKind::Key { .. }) || !old.is_valid(now) {
            return Err(ApiError::invalid("id", "must be that of a key that is still good; make a new one instead"));
        }
        let new = NewCredential {
            actor: old.actor.to_string(),
            actor_type: old.actor_type.as_ref().map(ToString::to_string),
            grant: old.grant.clone(),
            lasts: old.ends_at.map(|end| end.since(old.created_at)),
        };
        let made = self.create_key(by, digest, new).await?;
        // C-3: another caller may revoke the new key before the old one is ended, because the old one is still there.
        let at = now + overlap;
        let stays = made.credential.ends_at.map_or(at, |end| at.min(end - Duration::from_millis(1)));
        let given = administers(&old.grant).then(|| GoesOn { id: made.credential.id.clone(), at: stays });
        let ended = self.end(by, &old, at, given, Some(&made.credential.id)).await?;
        if ended.is_valid(at) && old.is_valid(at) {
            let text = "the new key was revoked before the old one was ended; the old one goes on: rotate it again";
            return Err(ApiError::Unavailable(text.to_owned()));
        }
        Ok(made)
    }

    /// Makes a credential nothing, at once here and within seconds elsewhere. C-3: not the last key of an administrator.
    pub async fn revoke_credential(&self, by: &Identity, id: &CredentialId) -> Result<Credential, ApiError> {
        for _ in 0..CONFLICTS_MAX {
            let (credential, now) = (self.manageable(by, id).await?, self.inner.ports.clock.now());
            let given = match administers(&credential.grant) && credential.is_valid(now) {
                true => self.goes_on_without(by, &credential, now).await?,
                false => None,
            };
            let ended = self.end(by, &credential, now, given, None).await?;
            if !ended.is_valid(now) {
                return Ok(ended);
            }
            // The key that was to stay has been ended meanwhile.
        }
        Err(ApiError::Unavailable("other administrators' keys are being revoked at the same time; try again".into()))
    }

    /// C-3: the key that stays if this one goes, or the refusal. A caller with a token is an administrator whom no stored
    /// credential makes one, so nothing has to stay. A certificate counts only if the caller came in with it, which proves that
    /// the server takes certificates.
    async fn goes_on_without(&self, by: &Identity, ended: &Credential, now: Timestamp) -> Result<Option<GoesOn>, ApiError> {
        let store = &self.inner.ports.store;
        let is_stored = by.via == ended.id || store.credential(&by.via).await?.is_some();
        if !is_stored && administers(&by.grant) {
            return Ok(None);
        }
        let at = now + LEFT_FOR;
        let stays = |other: &&Credential| {
            let is_usable = matches!(other.kind, CredentialKind::Key { .. }) || other.id == by.via;
            other.id != ended.id && is_usable && administers(&other.grant) && other.is_valid(at)
        };
        let mut after = None;
        loop {
            let rows = store.credentials(after.as_ref(), PAGE_MAX).await?;
            if let Some(other) = rows.iter().find(stays) {
                return Ok(Some(GoesOn { id: other.id.clone(), at }));
            }
            match rows.last().filter(|_| rows.len() == PAGE_MAX) {
                Some(last) => after = Some(last.id.clone()),
                None => return Err(ApiError::Forbidden(LAST_ADMIN.into())),
            }
        }
    }

    /// Credentials in reach, by id, after one; and where the list goes on.
    pub async fn credentials(
        &self,
        by: &Identity,
        after: Option<&CredentialId>,
        limit: usize,
    ) -> Result<(Vec<Credential>, Option<CredentialId>), ApiError> {
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(ApiError::invalid("limit", format_args!("must be between 1 and {PAGE_MAX}")));
        }
        let (mut after, mut found) = (after.cloned(), Vec::new());
        // Ids out of reach are not told, not even as the place where a list goes on.
        while found.len() <= limit {
            let rows = self.inner.ports.store.credentials(after.as_ref(), PAGE_MAX).await?;
            after = rows.last().map(|last| last.id.clone());
            let is_last = rows.len() < PAGE_MAX;
            found.extend(rows.into_iter().filter(|credential| in_reach(by, credential)));
            if is_last {
                break;
            }
        }
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().map(|last| last.id.clone()).filter(|_| more);
        Ok((found, next))
    }

    /// The key of a new installation, for everything. None if there ever was one. It counts once it is kept: until then the
    /// administrator can be given it, so that a crash in between leaves a key that is good for nothing rather than none.
    pub async fn first_key(&self, digest: &DigestKey) -> Result<Option<MadeKey>, ApiError> {
        let key = ApiKey::first(&self.random_key());
        if self.inner.ports.store.credential(&key.id).await?.is_some() {
            return Ok(None);
        }
        Ok(Some(self.admin_key(key, digest)))
    }

    /// Another key for everything, for those who have the machine and lost their key. Counts once it is kept, like the first.
    pub fn another_admin_key(&self, digest: &DigestKey) -> MadeKey {
        self.admin_key(self.random_key(), digest)
    }

    fn admin_key(&self, key: ApiKey, digest: &DigestKey) -> MadeKey {
        let roles = [Role::Viewer, Role::Submitter, Role::Approver, Role::Operator, Role::Admin].into();
        let actor = ActorId::from("admin");
        let credential = Credential {
            id: key.id.clone(),
            kind: CredentialKind::Key { digest: digest.digest(&key) },
            actor: actor.clone(),
            actor_type: None,
            grant: Grant { reach: Reach::Everyone, roles, pools: Default::default(), payloads: true },
            created_at: self.inner.ports.clock.now(),
            created_by: actor,
            ends_at: None,
        };
        MadeKey { credential, key }
    }

    /// False if another process has kept one of this id meanwhile.
    pub async fn keep_admin_key(&self, made: &MadeKey) -> Result<bool, ApiError> {
        let credential = made.credential.clone();
        let entry = record(AuditAction::CredentialCreated, &credential.actor, &credential, credential.created_at, None);
        Ok(self.inner.ports.store.add_credential(credential, entry).await?)
    }

    fn random_key(&self) -> ApiKey {
        let mut random = [0; ApiKey::RANDOM_BYTES];
        self.inner.ports.entropy.fill(&mut random);
        ApiKey::new(random)
    }

    fn checked(
        &self,
        by: &Identity,
        new: NewCredential,
        id: CredentialId,
        kind: CredentialKind,
    ) -> Result<Credential, ApiError> {
        let mut errors = Vec::new();
        let mut check = |field: &str, name: &str| {
            if let Err(error) = check_name(name) {
                errors.push(FieldError::new(field, error));
            }
        };
        check("actor", &new.actor);
        new.actor_type.iter().for_each(|kind| check("actor_type", kind));
        new.grant.pools.iter().for_each(|pool| check("pools", pool.as_str()));
        if let Reach::Tenant(tenant) = &new.grant.reach {
            check("tenant", tenant.as_str());
        }
        errors.extend(new.grant.fault().map(|(field, text)| FieldError::new(field, text)));
        if !errors.is_empty() {
            return Err(ApiError::Invalid(errors));
        }
        if !by.grant.covers(&new.grant) {
            return Err(ApiError::Forbidden("nobody can give away more than they have".into()));
        }
        let now = self.inner.ports.clock.now();
        Ok(Credential {
            id,
            kind,
            actor: new.actor.into(),
            actor_type: new.actor_type.map(Into::into),
            grant: new.grant,
            created_at: now,
            created_by: by.actor.clone(),
            ends_at: new.lasts.map(|span| now + span),
        })
    }

    async fn keep(&self, by: &Identity, credential: &Credential) -> Result<(), ApiError> {
        let entry = record(AuditAction::CredentialCreated, &by.actor, credential, credential.created_at, Some(&by.via));
        let entry = entry.seen_from(by.source);
        let (inner, kept) = (self.inner.clone(), credential.clone());
        let added = to_the_end(async move {
            let (id, now) = (kept.id.clone(), kept.created_at);
            let added = inner.ports.store.add_credential(kept.clone(), entry).await?;
            if added {
                inner.keyring.learn(&id, Some(kept), now);
            }
            Ok::<bool, ApiError>(added)
        });
        if added.await?? {
            return Ok(());
        }
        let text = format!("{:?} is bound already; revoked ones too, so that records stay clear", credential.id.as_str());
        Err(ApiError::Outdated(text))
    }

    async fn end(
        &self,
        by: &Identity,
        credential: &Credential,
        at: Timestamp,
        given: Option<GoesOn>,
        successor: Option<&CredentialId>,
    ) -> Result<Credential, ApiError> {
        let now = self.inner.ports.clock.now();
        let entry = record(AuditAction::CredentialEnded, &by.actor, credential, now, successor.or(Some(&by.via)));
        let entry = entry.seen_from(by.source);
        let (inner, id) = (self.inner.clone(), credential.id.clone());
        let ended = to_the_end(async move {
            let ended = inner.ports.store.end_credential(&id, at, given, entry).await?;
            inner.keyring.learn(&id, ended.clone(), now);
            Ok::<_, ApiError>(ended)
        });
        ended.await??.ok_or_else(|| no_such(&credential.id))
    }

    /// A credential that the caller may end; what is out of reach does not exist.
    async fn manageable(&self, by: &Identity, id: &CredentialId) -> Result<Credential, ApiError> {
        let found = self.inner.ports.store.credential(id).await?;
        found.filter(|credential| in_reach(by, credential)).ok_or_else(|| no_such(id))
    }
}

/// Whether it is for all of the installation, other credentials included.
fn administers(grant: &Grant) -> bool {
    grant.reach == Reach::Everyone && grant.roles.contains(&Role::Admin)
}

fn no_such(id: &CredentialId) -> ApiError {
    ApiError::no_such("credential", id)
}

fn in_reach(by: &Identity, credential: &Credential) -> bool {
    match &credential.grant.reach {
        Reach::Tenant(tenant) => by.grant.reaches(tenant),
        Reach::Everyone => by.grant.reach == Reach::Everyone,
    }
}

/// Who did it, to what, and by means of which credential. Never the secret: nobody here has it.
fn record(
    action: AuditAction,
    actor: &ActorId,
    credential: &Credential,
    at: Timestamp,
    via: Option<&CredentialId>,
) -> AuditEntry {
    let grant = &credential.grant;
    let tenant = match &grant.reach {
        Reach::Tenant(tenant) => tenant.clone(),
        Reach::Everyone => TenantId::from("default"),
    };
    let detail = serde_json::json!({
        "actor": credential.actor,
        "roles": grant.roles,
        "everyone": grant.reach == Reach::Everyone,
        "ends_at_ms": credential.ends_at.map(Timestamp::as_millis),
        "via": via,
    });
    let subject: Arc<str> = credential.id.as_str().into();
    AuditEntry { at, tenant, actor: actor.clone(), action, subject, detail: Json::trusted(detail.to_string()) }
}

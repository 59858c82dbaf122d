//! Credentials.

use lockgate_api::{ToWire, credential_to_wire};
use lockgate_core::access::{Credential, CredentialId, Identity};
use lockgate_core::request::Caller;
use lockgate_core::time::Timestamp;
use lockgate_engine::MadeKey;
use lockgate_proto::v1;

pub(crate) fn credentials(rows: &[Credential], next: Option<&CredentialId>, now: Timestamp) -> v1::ListCredentialsResponse {
    v1::ListCredentialsResponse {
        credentials: rows.iter().map(|credential| credential_to_wire(credential, now)).collect(),
        next_after: next.map(ToString::to_string).unwrap_or_default(),
    }
}

pub(crate) fn made_key(made: &MadeKey, now: Timestamp) -> v1::CreateKeyResponse {
    v1::CreateKeyResponse { credential: Some(credential_to_wire(&made.credential, now)), key: made.key.reveal() }
}

pub(crate) fn who_am_i(caller: &Caller, identity: Option<&Identity>) -> v1::WhoAmIResponse {
    v1::WhoAmIResponse {
        actor: caller.actor.to_string(),
        actor_type: caller.actor_type.as_deref().unwrap_or_default().to_owned(),
        tenant: caller.tenant.to_string(),
        grant: identity.map(|identity| identity.grant.to_wire()),
        credential: identity.map(|identity| identity.via.to_string()).unwrap_or_default(),
    }
}

use lockgate_proto::v1;

use super::{at, text, texts};

fn grant() -> v1::Grant {
    v1::Grant { roles: texts(&["submitter"]), tenant: text("acme"), pools: texts(&["p"]), payloads: true }
}

fn credential() -> v1::Credential {
    v1::Credential {
        id: text("c1"),
        kind: text("key"),
        actor: text("ann"),
        actor_type: text("person"),
        grant: Some(grant()),
        created_at_ms: at(0),
        created_by: text("root"),
        ends_at_ms: Some(at(1)),
        ended: true,
    }
}

pub(crate) fn made_key() -> v1::CreateKeyResponse {
    v1::CreateKeyResponse { credential: Some(credential()), key: text("lgk_c1_secret") }
}

pub(crate) fn credentials() -> v1::ListCredentialsResponse {
    let everywhere = v1::Grant { tenant: text(""), pools: Vec::new(), ..grant() };
    let bare = v1::Credential { actor_type: text(""), grant: Some(everywhere), ends_at_ms: None, ..credential() };
    v1::ListCredentialsResponse { credentials: vec![credential(), bare], next_after: text("c1") }
}

pub(crate) fn who_am_i() -> v1::WhoAmIResponse {
    v1::WhoAmIResponse {
        actor: text("ann"),
        actor_type: text("person"),
        tenant: text("acme"),
        grant: Some(grant()),
        credential: text("c1"),
    }
}

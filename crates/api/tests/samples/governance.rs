use lockgate_proto::v1;

use super::{at, text, texts};

pub(crate) fn policies() -> v1::ListPoliciesResponse {
    let policy = v1::Policy {
        snapshot: text("sha256:1"),
        version: 3,
        text: text("version: 1\n"),
        actor: text("ann"),
        activated_at_ms: Some(at(0)),
        in_force: true,
    };
    v1::ListPoliciesResponse { policies: vec![policy, v1::Policy::default()] }
}

pub(crate) fn configs() -> v1::ListConfigsResponse {
    let config = v1::Config {
        snapshot: text("pools:1"),
        version: 3,
        text: text("pools: {}\n"),
        actor: text("ann"),
        activated_at_ms: Some(at(0)),
        in_force: true,
    };
    v1::ListConfigsResponse { configs: vec![config] }
}

pub(crate) fn activated_policy() -> v1::ActivatePolicyResponse {
    v1::ActivatePolicyResponse { version: 3, snapshot: text("sha256:1"), unchanged: false, recalled: 0 }
}

pub(crate) fn activated_config() -> v1::ActivateConfigResponse {
    v1::ActivateConfigResponse { version: 3, snapshot: text("pools:1"), unchanged: true }
}

pub(crate) fn audit() -> v1::ListAuditResponse {
    let row = v1::AuditRow {
        id: 9,
        at_ms: at(0),
        tenant: text("acme"),
        actor: text("ann"),
        action: text("approved"),
        subject: text("a"),
        detail_json: r#"{"note":"fine"}"#.into(),
        source: text("127.0.0.1"),
    };
    v1::ListAuditResponse { rows: vec![row, v1::AuditRow::default()], next_after: Some(9) }
}

pub(crate) fn verified() -> v1::VerifyAuditResponse {
    let (broken, losses) = (text("block 3 is broken"), texts(&["the database was empty"]));
    v1::VerifyAuditResponse { blocks: 2, rows: 9, unsealed: 1, broken, losses }
}

pub(crate) fn breakers() -> v1::ListBreakersResponse {
    let breaker = v1::Breaker {
        name: text("input"),
        state: text("half_open"),
        failures: 3,
        open_until_ms: Some(at(1)),
        last_error: text("away"),
        sharing: text("local_fallback"),
    };
    v1::ListBreakersResponse { breakers: vec![breaker] }
}

//! What is in force, the audit trail, circuit breakers.

use lockgate_api::json_bytes;
use lockgate_core::audit::AuditRow;
use lockgate_core::time::Timestamp;
use lockgate_engine::Activated;
use lockgate_ports::BreakerView;
use lockgate_proto::v1;

pub(crate) fn activated(activated: &Activated) -> v1::ActivatePolicyResponse {
    v1::ActivatePolicyResponse {
        version: activated.version,
        snapshot: activated.snapshot.to_string(),
        unchanged: activated.unchanged,
        recalled: u32::try_from(activated.recalled).unwrap_or(u32::MAX),
    }
}

pub(crate) fn audit_row(row: &AuditRow) -> v1::AuditRow {
    let entry = &row.entry;
    v1::AuditRow {
        id: row.id,
        at_ms: entry.at.as_millis(),
        tenant: entry.tenant.to_string(),
        actor: entry.actor.to_string(),
        action: entry.action.as_str().to_owned(),
        subject: entry.subject.to_string(),
        detail_json: json_bytes(&entry.detail),
        source: entry.source().unwrap_or_default(),
    }
}

pub(crate) fn breaker(view: &BreakerView) -> v1::Breaker {
    v1::Breaker {
        name: view.name.to_owned(),
        state: view.state.as_str().to_owned(),
        failures: view.failures,
        open_until_ms: view.open_until.map(Timestamp::as_millis),
        last_error: view.last_error.as_deref().unwrap_or_default().to_owned(),
        sharing: view.sharing.as_str().to_owned(),
    }
}

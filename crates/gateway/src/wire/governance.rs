//! What is in force, the audit trail, circuit breakers.

use lockgate_api::ToWire;
use lockgate_core::audit::AuditRow;
use lockgate_core::time::Timestamp;
use lockgate_engine::{Activated, Verified};
use lockgate_ports::BreakerView;
use lockgate_proto::v1;

use crate::configs::ConfigVersion;

pub(crate) fn activated_policy(activated: Activated) -> v1::ActivatePolicyResponse {
    let Activated { version, snapshot, unchanged, recalled } = activated;
    let recalled = u32::try_from(recalled).unwrap_or(u32::MAX);
    v1::ActivatePolicyResponse { version, snapshot: snapshot.to_string(), unchanged, recalled }
}

/// Pools, timeouts and quotas call nothing back.
pub(crate) fn activated(activated: Activated) -> v1::ActivateConfigResponse {
    let Activated { version, snapshot, unchanged, recalled: _ } = activated;
    v1::ActivateConfigResponse { version, snapshot: snapshot.to_string(), unchanged }
}

pub(crate) fn audit(rows: &[AuditRow], next_after: Option<i64>) -> v1::ListAuditResponse {
    v1::ListAuditResponse { rows: rows.iter().map(ToWire::to_wire).collect(), next_after }
}

pub(crate) fn verified(verified: Verified) -> v1::VerifyAuditResponse {
    let Verified { blocks, rows, unsealed, broken, losses } = verified;
    let broken = broken.map(|broken| broken.to_string()).unwrap_or_default();
    v1::VerifyAuditResponse { blocks, rows, unsealed, broken, losses }
}

pub(crate) fn breakers(views: &[BreakerView]) -> v1::ListBreakersResponse {
    v1::ListBreakersResponse { breakers: views.iter().map(breaker).collect() }
}

fn breaker(view: &BreakerView) -> v1::Breaker {
    v1::Breaker {
        name: view.name.to_owned(),
        state: view.state.as_str().to_owned(),
        failures: view.failures,
        open_until_ms: view.open_until.map(Timestamp::as_millis),
        last_error: view.last_error.as_deref().unwrap_or_default().to_owned(),
        sharing: view.sharing.as_str().to_owned(),
    }
}

impl From<ConfigVersion> for v1::Config {
    fn from(known: ConfigVersion) -> Self {
        let activation = known.activation.as_ref();
        Self {
            version: known.version(),
            text: known.text.as_deref().unwrap_or_default().to_owned(),
            actor: activation.map(|activation| activation.actor.to_string()).unwrap_or_default(),
            activated_at_ms: activation.map(|activation| activation.at.as_millis()),
            in_force: known.in_force,
            snapshot: known.snapshot.to_string(),
        }
    }
}

impl From<ConfigVersion> for v1::Policy {
    fn from(known: ConfigVersion) -> Self {
        let v1::Config { snapshot, version, text, actor, activated_at_ms, in_force } = known.into();
        Self { snapshot, version, text, actor, activated_at_ms, in_force }
    }
}

#[cfg(test)]
mod tests {
    use lockgate_api::view::SharingName;
    use lockgate_ports::Sharing;

    #[test]
    fn the_document_names_every_sharing() {
        assert!(SharingName::all().eq(Sharing::ALL.map(Sharing::as_str)));
    }
}

//! `job.db_tx`: an effect that happens once, however often its job runs. A unique key in the database guarantees it.

use std::error::Error;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::context::Context;
use crate::error::JobError;
use crate::payload::Payload;

/// A failure of the database. Always retried.
pub type EffectError = Box<dyn Error + Send + Sync>;

/// A table with a unique key.
#[async_trait]
pub trait Effects: Send + Sync {
    /// Stores `value` under `key` unless the key exists. Returns whether this call stored it.
    ///
    /// Check and insert must be one transaction, durable when this returns.
    async fn insert_once(&self, key: &str, value: &str) -> Result<bool, EffectError>;
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DbTxInput {
    unique_key: String,
    value: Box<RawValue>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct DbTxOutput {
    /// False if an earlier attempt, or another job with this key, had stored it.
    applied: bool,
}

pub(super) async fn run(effects: Arc<dyn Effects>, context: Context, payload: Payload) -> Result<DbTxOutput, JobError> {
    apply(&*effects, context.tenant(), &payload).await
}

/// Keys are prefixed by tenant, so that those of different tenants never collide.
async fn apply(effects: &dyn Effects, tenant: &str, payload: &Payload) -> Result<DbTxOutput, JobError> {
    let input: DbTxInput = payload.json()?;
    if input.unique_key.is_empty() {
        return Err(JobError::fatal("bad payload: field `unique_key`: must not be empty"));
    }
    let key = format!("{tenant}/{}", input.unique_key);
    let applied = effects.insert_once(&key, input.value.get()).await.map_err(JobError::retryable)?;
    Ok(DbTxOutput { applied })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use parking_lot::Mutex;

    use super::*;

    #[derive(Default)]
    struct Table(Mutex<BTreeMap<String, String>>);

    #[async_trait]
    impl Effects for Table {
        async fn insert_once(&self, key: &str, value: &str) -> Result<bool, EffectError> {
            let mut rows = self.0.lock();
            if rows.contains_key(key) {
                return Ok(false);
            }
            rows.insert(key.to_owned(), value.to_owned());
            Ok(true)
        }
    }

    #[tokio::test]
    async fn an_effect_is_applied_once_per_tenant_and_key() {
        let table = Table::default();
        let payload = Payload::new(r#"{"unique_key":"order-1","value":{"eur":5}}"#.as_bytes().into());
        assert_eq!(apply(&table, "a", &payload).await, Ok(DbTxOutput { applied: true }));
        assert_eq!(apply(&table, "a", &payload).await, Ok(DbTxOutput { applied: false }));
        assert_eq!(apply(&table, "b", &payload).await, Ok(DbTxOutput { applied: true }));
        assert_eq!(table.0.lock()["a/order-1"], r#"{"eur":5}"#);
    }
}

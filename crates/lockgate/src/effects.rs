//! Connects the built-in `job.db_tx` to SQLite: the worker library defines the trait, the adapter implements it.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use lockgate_sqlite::SqliteEffects;
use lockgate_worker::handlers::{EffectError, Effects};

use crate::error::CliError;

struct InFolder(SqliteEffects);

#[async_trait]
impl Effects for InFolder {
    async fn insert_once(&self, key: &str, value: &str) -> Result<bool, EffectError> {
        Ok(self.0.insert_once(key, value).await?)
    }
}

/// Opens the effects of a folder, which must exist.
pub(crate) fn open(folder: &Path) -> Result<Arc<dyn Effects>, CliError> {
    let effects =
        SqliteEffects::open(folder).map_err(|error| CliError::Usage(format!("effects in {}: {error}", folder.display())))?;
    Ok(Arc::new(InFolder(effects)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_effect_happens_once_per_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let effects = open(folder.path()).expect("opened");
        assert!(effects.insert_once("k", "1").await.expect("stored"));
        assert!(!effects.insert_once("k", "2").await.expect("stored"));
    }

    #[test]
    fn a_missing_folder_is_named() {
        let error = open(Path::new("/no/such/folder")).err().expect("refused");
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    }
}

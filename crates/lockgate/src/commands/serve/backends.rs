//! The backends of the engine: a data folder of its own, or servers that it shares with other processes.

use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_memory::{MemoryBus, MemoryLanes};
use lockgate_ports::{Bus, Clock, Counters, Entropy, Lanes, Store, StoreError};
use lockgate_sqlite::{FolderOptions, SqliteStore, private_folder};
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use super::Serve;
use super::metrics;
use crate::commands::backup::new_timeline;
use crate::error::CliError;
use crate::servers::ServerAddresses;

/// Deleted when the disk is full. Enough for the results of some ten thousand jobs.
const RESERVE_BYTES: u64 = 16 << 20;

pub(super) struct Backends {
    pub(super) store: Arc<dyn Store>,
    pub(super) lanes: Arc<dyn Lanes>,
    pub(super) bus: Arc<dyn Bus>,
    /// The counters that all processes share.
    pub(super) counters: Option<Arc<dyn Counters>>,
    /// Set when the process must stop because it is unknown what is on disk.
    pub(super) fatal: watch::Receiver<Option<StoreError>>,
    /// The durability that an acknowledged submit has.
    pub(super) ack: &'static str,
    /// Whether other processes use these backends too.
    pub(super) shared: bool,
}

impl Serve {
    pub(super) async fn ground(
        &self,
        clock: &Arc<dyn Clock>,
        entropy: &Arc<dyn Entropy>,
        registry: &mut Registry,
    ) -> Result<Backends, CliError> {
        match self.servers.shared()? {
            Some(servers) => self.together(&servers, entropy, registry).await,
            None => self.alone(clock, registry).await,
        }
    }

    async fn alone(&self, clock: &Arc<dyn Clock>, registry: &mut Registry) -> Result<Backends, CliError> {
        let options =
            FolderOptions { bytes_max: self.disk_limit, accept_loss: self.accept_loss, reserve_bytes: Some(RESERVE_BYTES) };
        let store = SqliteStore::open_with(&self.data, clock.clone(), options);
        let store = store.map_err(|error| CliError::Usage(error.to_string()))?;
        if let Some(loss) = store.loss() {
            // As after a restore, the database is in an earlier state: workers may hold tokens that it would hand out again.
            let detail = serde_json::json!({ "missing": loss });
            new_timeline(&store, AuditAction::LossAccepted, loss, &detail).await?;
        } else if self.accept_loss {
            tracing::warn!(
                "--accept-loss was given and nothing is missing: start without it, so that a later loss is refused"
            );
        }
        let (fatal, store) = (store.fatal(), Arc::new(store));
        metrics::of_sqlite(registry, &store);
        let (lanes, bus) = (Arc::new(MemoryLanes::default()), Arc::new(MemoryBus::default()));
        Ok(Backends { store, lanes, bus, counters: None, fatal, ack: "fsynced", shared: false })
    }

    async fn together(
        &self,
        servers: &ServerAddresses,
        entropy: &Arc<dyn Entropy>,
        registry: &mut Registry,
    ) -> Result<Backends, CliError> {
        // The folder for the built-in worker's journal and the key of findings.
        private_folder(&self.data).map_err(|error| CliError::Usage(format!("{}: {error}", self.data.display())))?;
        let store = Arc::new(servers.store().await?);
        let (lanes, bus) = (Arc::new(servers.lanes().await?), Arc::new(servers.bus(entropy.clone()).await?));
        metrics::of_cluster(registry, &store, &lanes, &bus);
        let (_, fatal) = watch::channel(None);
        let counters: Arc<dyn Counters> = Arc::new(servers.counters().await?);
        Ok(Backends { store, lanes, bus, counters: Some(counters), fatal, ack: "sql_committed", shared: true })
    }
}

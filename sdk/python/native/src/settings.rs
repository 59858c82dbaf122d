//! What Python says of a server and of a worker, as JSON.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use lockgate_client::{Client, ClientBuilder, TlsFiles};
use lockgate_worker::{LeaseLoss, Worker};
use serde::Deserialize;

/// How a server is reached, and on whose behalf.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerAccess {
    url: String,
    #[serde(default)]
    more_urls: Vec<String>,
    credential: Option<String>,
    tls_ca: Option<PathBuf>,
    tls_cert: Option<PathBuf>,
    tls_key: Option<PathBuf>,
    #[serde(default)]
    insecure_plaintext: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientSettings {
    server: ServerAccess,
    tenant: Option<String>,
    actor: Option<String>,
    actor_type: Option<String>,
    call_timeout_ms: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerSettings {
    server: ServerAccess,
    worker_id: Option<String>,
    pool: Option<String>,
    region: Option<String>,
    slots: Option<u32>,
    prefetch: Option<u32>,
    #[serde(default)]
    capabilities: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
    drain_timeout_ms: Option<u64>,
    journal: Option<PathBuf>,
    /// Topics whose attempts stop when the lease is lost.
    #[serde(default)]
    stop_on_lease_loss: Vec<String>,
}

impl ServerAccess {
    fn tls(&self) -> TlsFiles {
        let cert = self.tls_cert.clone();
        // One without the other is refused where the files are read, in words that name the missing one.
        let identity = match (cert, self.tls_key.clone()) {
            (None, None) => None,
            (cert, key) => Some((cert.unwrap_or_default(), key.unwrap_or_default())),
        };
        TlsFiles { ca: self.tls_ca.clone(), identity }
    }
}

impl ClientSettings {
    pub(crate) fn builder(&self) -> ClientBuilder {
        let mut builder = Client::connect(&self.server.url).tls(self.server.tls());
        if let Some(credential) = &self.server.credential {
            builder = builder.credential(credential.as_str());
        }
        if self.server.insecure_plaintext {
            builder = builder.insecure_plaintext();
        }
        if let Some(tenant) = &self.tenant {
            builder = builder.tenant(tenant);
        }
        if let Some(actor) = &self.actor {
            builder = builder.actor(actor);
        }
        if let Some(kind) = &self.actor_type {
            builder = builder.actor_type(kind);
        }
        match self.call_timeout_ms {
            Some(ms) => builder.call_timeout(Duration::from_millis(ms)),
            None => builder,
        }
    }
}

impl WorkerSettings {
    /// A worker without handlers.
    pub(crate) fn worker(&self) -> Worker {
        let mut worker = self.reach(Worker::connect(&self.server.url).tls(self.server.tls()));
        if let Some(id) = &self.worker_id {
            worker = worker.worker_id(id);
        }
        if let Some(pool) = &self.pool {
            worker = worker.pool(pool);
        }
        if let Some(region) = &self.region {
            worker = worker.region(region);
        }
        if let Some(slots) = self.slots {
            worker = worker.slots(slots);
        }
        if let Some(jobs) = self.prefetch {
            worker = worker.prefetch(jobs);
        }
        if let Some(ms) = self.drain_timeout_ms {
            worker = worker.drain_timeout(Duration::from_millis(ms));
        }
        if let Some(path) = &self.journal {
            worker = worker.journal(path);
        }
        worker = self.capabilities.iter().fold(worker, |worker, name| worker.capability(name));
        self.labels.iter().fold(worker, |worker, (key, value)| worker.label(key, value))
    }

    fn reach(&self, mut worker: Worker) -> Worker {
        for url in &self.server.more_urls {
            worker = worker.or_connect(url);
        }
        if let Some(credential) = &self.server.credential {
            worker = worker.credential(credential.as_str());
        }
        if self.server.insecure_plaintext { worker.insecure_plaintext() } else { worker }
    }

    /// Said after the handlers are registered.
    pub(crate) fn lease_losses(&self, worker: Worker) -> Worker {
        self.stop_on_lease_loss.iter().fold(worker, |worker, topic| worker.on_lease_loss(topic, LeaseLoss::Stop))
    }
}

//! The TLS files for each server.

use std::path::PathBuf;

use clap::Args;
use clap::builder::FalseyValueParser;
use lockgate_tls::{Clear, FileNames, Tls, TlsPaths};

use crate::error::CliError;

const HEADING: &str = "Cluster";

const DATABASE: FileNames = FileNames { ca: "DATABASE_TLS_CA", cert: "DATABASE_TLS_CERT", key: "DATABASE_TLS_KEY" };
const REDIS: FileNames = FileNames { ca: "REDIS_TLS_CA", cert: "REDIS_TLS_CERT", key: "REDIS_TLS_KEY" };
const NATS: FileNames = FileNames { ca: "NATS_TLS_CA", cert: "NATS_TLS_CERT", key: "NATS_TLS_KEY" };

#[derive(Args, Debug, Default)]
pub(crate) struct DatabaseTlsArgs {
    /// Authority of the database's certificate, PEM; the public ones unless given
    #[arg(long, env = "DATABASE_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    database_tls_ca: Option<PathBuf>,

    /// Certificate to show to the database, PEM
    #[arg(long, env = "DATABASE_TLS_CERT", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    database_tls_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, env = "DATABASE_TLS_KEY", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    database_tls_key: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct RedisTlsArgs {
    /// Authority of Redis' certificate, PEM; the public ones unless given
    #[arg(long, env = "REDIS_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    redis_tls_ca: Option<PathBuf>,

    /// Certificate to show to Redis, PEM
    #[arg(long, env = "REDIS_TLS_CERT", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    redis_tls_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, env = "REDIS_TLS_KEY", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    redis_tls_key: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct NatsTlsArgs {
    /// Authority of NATS' certificate, PEM; the public ones unless given
    #[arg(long, env = "NATS_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    nats_tls_ca: Option<PathBuf>,

    /// Certificate to show to NATS, PEM
    #[arg(long, env = "NATS_TLS_CERT", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    nats_tls_cert: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(long, env = "NATS_TLS_KEY", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    nats_tls_key: Option<PathBuf>,
}

#[derive(Args, Debug, Default)]
pub(crate) struct ClearArgs {
    /// Speak in the clear with servers on other machines, as on a private network
    #[arg(long, env = "LOCKGATE_INSECURE_SERVERS", hide_env_values = true, value_parser = FalseyValueParser::new(),
        help_heading = HEADING)]
    insecure_servers: bool,
}

impl ClearArgs {
    pub(crate) const fn clear(&self) -> Clear {
        if self.insecure_servers { Clear::Anywhere } else { Clear::HereOnly }
    }
}

impl DatabaseTlsArgs {
    pub(crate) fn read(&self) -> Result<Tls, CliError> {
        read(&self.files(), DATABASE)
    }

    pub(super) fn files(&self) -> TlsPaths {
        files([&self.database_tls_ca, &self.database_tls_cert, &self.database_tls_key])
    }
}

impl RedisTlsArgs {
    pub(super) fn read(&self) -> Result<Tls, CliError> {
        read(&self.files(), REDIS)
    }

    pub(super) fn files(&self) -> TlsPaths {
        files([&self.redis_tls_ca, &self.redis_tls_cert, &self.redis_tls_key])
    }
}

impl NatsTlsArgs {
    pub(super) fn read(&self) -> Result<Tls, CliError> {
        read(&self.files(), NATS)
    }

    pub(super) fn files(&self) -> TlsPaths {
        files([&self.nats_tls_ca, &self.nats_tls_cert, &self.nats_tls_key])
    }
}

/// An empty variable counts as unset.
fn files(paths: [&Option<PathBuf>; 3]) -> TlsPaths {
    let [ca, cert, key] = paths.map(|path| path.clone().filter(|path| !path.as_os_str().is_empty()));
    TlsPaths { ca, cert, key }
}

fn read(files: &TlsPaths, names: FileNames) -> Result<Tls, CliError> {
    files.read(names).map_err(|error| CliError::Usage(error.to_string()))
}

/// These settings as command-line arguments, for a process that this one starts.
pub(super) fn words(server: &str, files: &TlsPaths) -> Vec<String> {
    let TlsPaths { ca, cert, key } = files;
    let named = [("ca", ca), ("cert", cert), ("key", key)].into_iter();
    let given = named.filter_map(|(name, path)| Some((name, path.as_ref()?)));
    given.flat_map(|(name, path)| [format!("--{server}-tls-{name}"), path.display().to_string()]).collect()
}

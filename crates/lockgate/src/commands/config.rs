//! Files that configure a server: what `lockgate pools`, `timeouts` and `quotas` have in common, and `lockgate policy`
//! where it is the same.

pub(super) mod files;
pub(super) mod shown;

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_core::quotas::Quotas;
use lockgate_proto::v1;

use crate::cli::Connection;
use crate::error::{CliError, Exit};
use crate::output::{Output, Tone};
use crate::session::CliSession;

/// What is configured.
pub(super) struct ConfigKind {
    wire: v1::ConfigKind,
    load: files::ConfigLoader,
    /// What holds while no file was ever applied.
    builtin: &'static str,
    /// The JSON Schema of such files.
    schema: &'static str,
}

pub(super) const POOLS: ConfigKind = ConfigKind {
    wire: v1::ConfigKind::Pools,
    load: files::LOAD_POOLS,
    builtin: "no pools were ever applied: one pool, `default`, takes every topic; `lockgate pools apply FILE` changes that",
    schema: lockgate_core::pools::SCHEMA,
};

pub(super) const TIMEOUTS: ConfigKind = ConfigKind {
    wire: v1::ConfigKind::Timeouts,
    load: files::LOAD_TIMEOUTS,
    builtin: "no timeouts were ever applied: 120s to start and 300s to run for every topic; \
              `lockgate timeouts apply FILE` changes that",
    schema: lockgate_core::timeouts::SCHEMA,
};

pub(super) const QUOTAS: ConfigKind = ConfigKind {
    wire: v1::ConfigKind::Quotas,
    load: files::LOAD_QUOTAS,
    builtin: "no quotas were ever applied: nobody is limited but by 10,000,000 jobs that have not ended; \
              `lockgate quotas apply FILE` changes that",
    schema: lockgate_core::quotas::SCHEMA,
};

/// What can be done with each of them.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// Put a file in force
    Apply(ApplyConfig),
    /// Check a file without a server and tell every fault
    Lint(LintConfig),
    /// Print the JSON Schema of such files, for editors
    Schema(SchemaConfig),
    /// Print what is in force, or an earlier one
    Show(ShowConfig),
    /// List what is or was in force, the latest first
    History(ConfigHistory),
    /// Put an earlier one in force again
    Rollback(RollbackConfig),
}

impl ConfigCommand {
    pub(super) async fn run(self, kind: &ConfigKind, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let connect = async || CliSession::connect(connection, out).await;
        match self {
            Self::Lint(command) => command.run(kind, out),
            Self::Schema(command) => command.run(kind, out),
            Self::Apply(command) => command.run(kind, &connect().await?).await,
            Self::Show(command) => command.run(kind, &connect().await?).await,
            Self::History(command) => command.run(kind, &connect().await?).await,
            Self::Rollback(command) => command.run(kind, &connect().await?).await,
        }
    }
}

#[derive(Args, Debug)]
pub(super) struct ApplyConfig {
    /// The file
    file: PathBuf,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

#[derive(Args, Debug)]
pub(super) struct LintConfig {
    /// The file
    file: PathBuf,
}

#[derive(Args, Debug)]
pub(super) struct ShowConfig {
    /// Id of an earlier one, from `history`
    #[arg(default_value = "", hide_default_value = true)]
    snapshot: String,
}

#[derive(Args, Debug)]
pub(super) struct SchemaConfig {}

#[derive(Args, Debug)]
pub(super) struct ConfigHistory {}

#[derive(Args, Debug)]
pub(super) struct RollbackConfig {
    /// Id of the earlier one, from `history`
    snapshot: String,

    /// Only if this version is in force now
    #[arg(long, value_name = "VERSION")]
    expect: Option<u64>,
}

impl ApplyConfig {
    /// The server decides whether the file is fine. If it is not, the faults are told from here: an error of the server
    /// has no room for all of them.
    pub(super) async fn run(self, kind: &ConfigKind, session: &CliSession) -> Result<Exit, CliError> {
        let (file, text) = (self.file.display().to_string(), files::read(&self.file)?);
        let request = v1::ActivateConfigRequest {
            kind: kind.wire.into(),
            file: file.clone(),
            text: text.clone(),
            expected_version: self.expect,
        };
        let response = session.pools().activate_config(request).await;
        match session.answer(response) {
            Ok(activated) => {
                warn_of_missing_pools(kind, &file, &text, session).await;
                shown::activated(&activated.into(), session.out)
            }
            Err(refused @ CliError::Refused { .. }) => match (kind.load)(&file, &text) {
                Err(errors) => files::tell(&errors, None, session.out),
                Ok(_) => Err(refused),
            },
            Err(error) => Err(error),
        }
    }
}

/// Quotas may name pools that do not exist yet, so an unknown pool is a warning and no error. Without a server to ask, there
/// is no warning.
async fn warn_of_missing_pools(kind: &ConfigKind, file: &str, text: &str, session: &CliSession) {
    let named = Quotas::load(file, text).ok().filter(|_| kind.wire == v1::ConfigKind::Quotas);
    let Some(named) = named.map(|quotas| quotas.ceilings.pools).filter(|pools| !pools.is_empty()) else { return };
    let Ok(known) = session.pools().list_pools(v1::ListPoolsRequest {}).await else { return };
    let known: BTreeSet<String> = known.into_inner().pools.into_iter().map(|pool| pool.name).collect();
    for missing in named.keys().filter(|pool| !known.contains(pool.as_str())) {
        let known = known.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        session
            .out
            .remark(&format!("ceilings.pools.{missing}: there is no such pool, so it limits nobody (known: {known})"));
    }
}

impl LintConfig {
    pub(super) fn run(self, kind: &ConfigKind, out: Output) -> Result<Exit, CliError> {
        let name = self.file.display().to_string();
        let snapshot = match (kind.load)(&name, &files::read(&self.file)?) {
            Ok(snapshot) => snapshot,
            Err(errors) => return files::tell(&errors, None, out),
        };
        if out.is_json() {
            out.json(&files::CheckedConfig { ok: true, snapshot: &snapshot })?;
        } else {
            out.line(&format!("{name}  {}  {snapshot}", out.paint("ok", Tone::Good)))?;
        }
        Ok(Exit::Success)
    }
}

impl ShowConfig {
    pub(super) async fn run(self, kind: &ConfigKind, session: &CliSession) -> Result<Exit, CliError> {
        let request = v1::GetConfigRequest { kind: kind.wire.into(), snapshot: self.snapshot };
        let response = session.pools().get_config(request).await;
        shown::text(&view::Config::from(session.answer(response)?), kind.builtin, session.out)
    }
}

impl SchemaConfig {
    pub(super) fn run(self, kind: &ConfigKind, out: Output) -> Result<Exit, CliError> {
        out.line(kind.schema.trim_end())?;
        Ok(Exit::Success)
    }
}

impl ConfigHistory {
    pub(super) async fn run(self, kind: &ConfigKind, session: &CliSession) -> Result<Exit, CliError> {
        let response = session.pools().list_configs(v1::ListConfigsRequest { kind: kind.wire.into() }).await;
        let configs = view::Configs::from(session.answer(response)?);
        if session.out.is_json() {
            session.out.json(&configs)?;
        } else {
            session.out.line(&shown::table(&configs.configs, session.out))?;
        }
        Ok(Exit::Success)
    }
}

impl RollbackConfig {
    pub(super) async fn run(self, kind: &ConfigKind, session: &CliSession) -> Result<Exit, CliError> {
        let request =
            v1::RollBackConfigRequest { kind: kind.wire.into(), snapshot: self.snapshot, expected_version: self.expect };
        let response = session.pools().roll_back_config(request).await;
        shown::activated(&session.answer(response)?.into(), session.out)
    }
}

//! `lockgate migrate`: brings the database up to date.

use clap::Args;
use serde::Serialize;

use crate::error::{CliError, Exit};
use crate::output::Output;
use crate::servers::{self, ClearArgs, DatabaseTlsArgs};

/// Bring the database up to date; `serve` does it by itself, and many at once take turns
#[derive(Args, Debug)]
pub(crate) struct Migrate {
    /// PostgreSQL or CockroachDB to bring up to date
    #[arg(long, env = "DATABASE_URL", hide_env_values = true, value_name = "URL")]
    database_url: String,

    #[command(flatten)]
    tls: DatabaseTlsArgs,

    #[command(flatten)]
    clear: ClearArgs,
}

#[derive(Serialize)]
struct Migrated {
    up_to_date: bool,
}

impl Migrate {
    pub(crate) async fn run(self, out: Output) -> Result<Exit, CliError> {
        let options = servers::database(&self.database_url, &self.tls.read()?, self.clear.clear()).await?;
        servers::migrate(&options).await?;
        if out.is_json() {
            out.json(&Migrated { up_to_date: true })?;
        } else {
            out.line("The database is up to date.")?;
        }
        Ok(Exit::Success)
    }
}

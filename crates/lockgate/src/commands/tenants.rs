//! `lockgate tenants`: what tenants have, and forgetting one.

use clap::{Args, Subcommand};
use lockgate_api::view;
use lockgate_proto::v1;
use serde::Serialize;

use crate::error::{CliError, Exit};
use crate::live::LiveBar;
use crate::output::{Output, TableCell, bytes};
use crate::session::CliSession;

/// Look at what tenants have and may have, and forget one
#[derive(Args, Debug)]
pub(crate) struct TenantsArgs {
    #[command(subcommand)]
    command: Option<TenantCommand>,
}

#[derive(Debug, Subcommand)]
enum TenantCommand {
    List(ListTenants),
    Erase(Erase),
}

/// List tenants with what they have, and of how much
#[derive(Args, Debug, Default)]
struct ListTenants {}

/// End everything a tenant has under way, and delete all its jobs, runs, schedules and keys
///
/// The audit trail stays: it names actors and ids, never payloads. What was begun can be gone on with by the same command.
#[derive(Args, Debug)]
struct Erase {
    /// The tenant
    tenant: String,

    /// Nothing of it comes back: say that you mean it
    #[arg(long)]
    yes: bool,
}

/// What all calls together ended and deleted.
#[derive(Debug, Default, Serialize)]
struct Erased {
    tenant: String,
    /// Jobs, runs and schedules that had not ended.
    ended: u64,
    jobs: u64,
    runs: u64,
}

impl Erased {
    fn add(&mut self, part: &v1::EraseTenantResponse) {
        self.ended += part.ended;
        self.jobs += part.jobs;
        self.runs += part.runs;
    }
}

impl TenantsArgs {
    pub(crate) async fn run(self, session: &mut CliSession) -> Result<Exit, CliError> {
        match self.command.unwrap_or(TenantCommand::List(ListTenants {})) {
            TenantCommand::List(command) => command.run(session).await,
            TenantCommand::Erase(command) => command.run(session).await,
        }
    }
}

impl ListTenants {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        let mut tenants = Vec::new();
        let mut after = String::new();
        loop {
            let response = session.admin().list_tenants(v1::ListTenantsRequest { after, limit: 1_000 }).await;
            let page = session.answer(response)?;
            tenants.extend(page.tenants.into_iter().map(view::Tenant::from));
            after = page.next_after;
            if after.is_empty() {
                break;
            }
        }
        if session.out.is_json() {
            session.out.json(&view::Tenants { tenants, next_after: None })?;
        } else if tenants.is_empty() {
            session.out.remark("no tenant has anything yet");
        } else {
            session.out.line(&table(&tenants, session.out))?;
        }
        Ok(Exit::Success)
    }
}

impl Erase {
    async fn run(self, session: &CliSession) -> Result<Exit, CliError> {
        if !self.yes {
            let text = format!("everything of tenant {:?} would be gone for ever; say --yes if you mean it", self.tenant);
            return Err(CliError::Usage(text));
        }
        let mut total = Erased { tenant: self.tenant.clone(), ..Erased::default() };
        let live = LiveBar::new(session.out, "erasing".to_owned());
        let mut stuck_for = 0;
        loop {
            let request = v1::EraseTenantRequest { tenant: self.tenant.clone(), confirm: self.tenant.clone() };
            let part = session.answer(session.admin().erase_tenant(request).await)?;
            let stuck = !part.done && part.ended + part.jobs + part.runs == 0;
            total.add(&part);
            live.say(format!("{} jobs and {} runs deleted", total.jobs, total.runs));
            if part.done {
                break;
            }
            // What ends takes its time where workers or orchestrators must hear of it.
            stuck_for = if stuck { stuck_for + 1 } else { 0 };
            if stuck_for > ROUNDS_MAX {
                return Err(CliError::Server(format!(
                    "{} jobs and {} runs do not end; a run that undoes its work must be resolved first: \
                     see `lockgate dag runs --tenant {}`, then repeat this",
                    part.live_jobs, part.live_runs, self.tenant
                )));
            }
            if stuck {
                tokio::time::sleep(AGAIN).await;
            }
        }
        live.clear();
        if session.out.is_json() {
            session.out.json(&total)?;
        } else {
            session.out.line(&format!(
                "tenant {} is forgotten: {} ended, {} jobs and {} runs deleted",
                total.tenant, total.ended, total.jobs, total.runs
            ))?;
        }
        Ok(Exit::Success)
    }
}

const AGAIN: std::time::Duration = std::time::Duration::from_millis(500);
/// Half a minute in which nothing ended.
const ROUNDS_MAX: u32 = 60;

fn table(tenants: &[view::Tenant], out: Output) -> String {
    let of = |has: u64, max: Option<u64>| match max {
        Some(max) => format!("{has} of {max}"),
        None => has.to_string(),
    };
    let row = |tenant: &view::Tenant| {
        let quota = &tenant.quota;
        let stored = match quota.stored_bytes {
            Some(max) => format!("{} of {}", bytes(tenant.stored_bytes), bytes(max)),
            None => bytes(tenant.stored_bytes),
        };
        vec![
            TableCell::text(&tenant.name),
            TableCell::text(of(tenant.jobs, quota.jobs)),
            TableCell::number(&tenant.ended),
            TableCell::text(of(tenant.runs, quota.runs)),
            TableCell::text(&stored),
            TableCell::text(quota.submit_rate.as_deref().unwrap_or("-")),
            TableCell::text(quota.actor_rate.as_deref().unwrap_or("-")),
        ]
    };
    let rows: Vec<_> = tenants.iter().map(row).collect();
    out.table(&["tenant", "jobs", "ended", "runs", "stored", "rate", "per actor"], &rows)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::output::Format;

    #[test]
    fn what_is_limited_says_of_how_much() {
        let tenant = v1::Tenant {
            name: "acme".to_owned(),
            jobs: 12,
            ended: 3_000,
            runs: 2,
            stored_bytes: 5 << 20,
            quota: Some(v1::TenantQuota {
                submit_rate: "500/s".to_owned(),
                jobs: Some(100),
                stored_bytes: Some(10 << 30),
                ..v1::TenantQuota::default()
            }),
        };
        let text =
            table(&[view::Tenant::from(tenant)], Output::new(Format::People { colour: false }, Timestamp::UNIX_EPOCH));
        let expected = "TENANT  JOBS       ENDED  RUNS  STORED             RATE   PER ACTOR
acme    12 of 100   3000  2     5.0 MiB of 10 GiB  500/s  -";
        assert_eq!(text, expected);
    }
}

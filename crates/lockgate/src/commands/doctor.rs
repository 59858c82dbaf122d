//! `lockgate doctor`: examines this installation and its servers, and explains what is wrong and what it means for
//! Lockgate's guarantees.

mod installation;

use clap::Args;
use lockgate_core::time::Timestamp;
use lockgate_ports::Clock;
use lockgate_ports::checkup::{Check, Grade};
use lockgate_tls::{Clear, Tls};
use serde::Serialize;

use crate::cli::Connection;
use crate::clock::SystemClock;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};
use crate::servers::{ServerAddresses, ServerArgs};
use crate::session::CliSession;

/// Look over a running server and, in a cluster, its PostgreSQL, Redis and NATS: what is not as it should be, and what to do
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    #[command(flatten)]
    servers: ServerArgs,
}

#[derive(Serialize)]
struct DoctorFinding {
    server: &'static str,
    what: &'static str,
    found: String,
    grade: &'static str,
    meaning: String,
}

impl Doctor {
    pub(crate) async fn run(self, connection: &Connection, out: Output) -> Result<Exit, CliError> {
        let servers = self.servers.shared()?;
        let mut checks = lockgate(connection, out, servers.is_some()).await?;
        if let Some(servers) = servers {
            checks.extend(examine(&servers).await);
        }
        let worst = checks.iter().map(|(_, check)| check.grade).max().unwrap_or(Grade::Good);
        show(checks, out)?;
        Ok(if worst == Grade::Bad { Exit::Conflict } else { Exit::Success })
    }
}

/// If Lockgate does not run, its servers can still be examined; without servers to examine that is an error.
async fn lockgate(
    connection: &Connection,
    out: Output,
    beside_others: bool,
) -> Result<Vec<(&'static str, Check)>, CliError> {
    let looked = async { installation::examine(&CliSession::connect(connection, out).await?).await };
    let checks = match looked.await {
        Ok(checks) => checks,
        Err(error @ CliError::Unreachable { .. }) if beside_others => {
            vec![Check::new("reachable", "no", Grade::Notice, format!("{error}; --server names another"))]
        }
        Err(error) => return Err(error),
    };
    Ok(checks.into_iter().map(|check| ("Lockgate", check)).collect())
}

/// A server that cannot be examined is one finding among the others.
async fn examine(servers: &ServerAddresses) -> Vec<(&'static str, Check)> {
    let found = [
        ("PostgreSQL", postgres(servers).await.map_err(|error| error.to_string())),
        ("Redis", redis(servers).await.map_err(|error| error.to_string())),
        ("NATS", nats(servers).await.map_err(|error| error.to_string())),
    ];
    let mut checks = Vec::new();
    for (server, found) in found {
        match found {
            Ok(found) => checks.extend(found.into_iter().map(|check| (server, check))),
            Err(error) => checks.push((server, Check::new("reachable", "no", Grade::Bad, error))),
        }
    }
    checks
}

fn now() -> Timestamp {
    SystemClock.now()
}

async fn postgres(servers: &ServerAddresses) -> Result<Vec<Check>, lockgate_postgres::UnusableDatabase> {
    let options = servers.database().await?;
    Ok(with_wire(options.wire.tls(), servers, lockgate_postgres::examine(&options, now).await?))
}

async fn redis(servers: &ServerAddresses) -> Result<Vec<Check>, lockgate_redis::ConnectError> {
    let options = servers.redis()?;
    Ok(with_wire(options.tls.as_ref(), servers, lockgate_redis::examine(&options, now).await?))
}

async fn nats(servers: &ServerAddresses) -> Result<Vec<Check>, lockgate_nats::ConnectError> {
    let options = servers.nats()?;
    Ok(with_wire(options.tls.as_ref(), servers, lockgate_nats::examine(&options).await?))
}

/// Adds how a server was reached to its findings. A connection with TLS never falls back to clear text.
fn with_wire(tls: Option<&Tls>, servers: &ServerAddresses, found: Vec<Check>) -> Vec<Check> {
    const WHAT: &str = "connection";
    let wire = match tls {
        Some(tls) if tls.shows_certificate() => {
            Check::new(WHAT, "TLS, both sides", Grade::Good, "each has seen whom it speaks with")
        }
        Some(_) => Check::new(WHAT, "TLS", Grade::Good, "nobody on the way reads along"),
        None if servers.clear() == Clear::HereOnly => {
            Check::new(WHAT, "in the clear", Grade::Good, "the server is on this machine")
        }
        None => Check::new(WHAT, "in the clear", Grade::Notice, "as --insecure-servers allows: a network would read along"),
    };
    std::iter::once(wire).chain(found).collect()
}

fn show(checks: Vec<(&'static str, Check)>, out: Output) -> Result<(), CliError> {
    let finding = |(server, check): (&'static str, Check)| DoctorFinding {
        server,
        what: check.what,
        found: check.found,
        grade: check.grade.as_str(),
        meaning: check.meaning,
    };
    let findings: Vec<DoctorFinding> = checks.into_iter().map(finding).collect();
    if out.is_json() {
        return out.json(&findings);
    }
    let tone = |grade: &str| match grade {
        "good" => Tone::Good,
        "notice" => Tone::Waiting,
        _ => Tone::Bad,
    };
    let row = |f: &DoctorFinding| {
        let grade = TableCell::text(f.grade).toned(tone(f.grade));
        vec![
            TableCell::text(f.server),
            TableCell::text(f.what),
            TableCell::text(&f.found),
            grade,
            TableCell::text(&f.meaning),
        ]
    };
    let rows: Vec<_> = findings.iter().map(row).collect();
    out.line(&out.table(&["SERVER", "WHAT", "FOUND", "GRADE", "MEANING"], &rows))
}

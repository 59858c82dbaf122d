//! Examines a database: what its settings mean for Lockgate's guarantees.

use lockgate_core::time::Timestamp;
use lockgate_ports::checkup::{Check, Grade, clock_skew};
use tokio_postgres::Client;

use crate::error::UnusableDatabase;
use crate::options::ConnectOptions;
use crate::schema::check;

/// Every check, in a fixed order. `now` is this process's time.
pub async fn examine(options: &ConnectOptions, now: impl Fn() -> Timestamp) -> Result<Vec<Check>, UnusableDatabase> {
    let (client, _driver) = options.wire.dial(&options.config).await.map_err(UnusableDatabase::Unreachable)?;
    let product = one(&client, "SELECT version()").await?;
    let mut checks = vec![version(&product)];
    checks.push(clock(&client, now).await?);
    if !product.contains("CockroachDB") {
        for setting in ["fsync", "full_page_writes", "synchronous_commit"] {
            checks.push(durable(setting, &one(&client, &format!("SHOW {setting}")).await?));
        }
        checks.push(connections(&one(&client, "SHOW max_connections").await?, options));
        checks.push(horizon(&client).await?);
    }
    checks.push(schema(&client, options).await?);
    Ok(checks)
}

async fn one(client: &Client, sql: &str) -> Result<String, UnusableDatabase> {
    Ok(client.query_one(sql, &[]).await?.try_get(0)?)
}

fn version(product: &str) -> Check {
    let short = product.split(" on ").next().unwrap_or(product).to_owned();
    let major = short.split_whitespace().nth(1).and_then(|number| number.split('.').next()?.parse::<u32>().ok());
    match major {
        _ if product.contains("CockroachDB") => {
            let meaning = "only the SQL that CockroachDB speaks is used, and it was not run against a real one";
            Check::new("version", short, Grade::Notice, meaning)
        }
        Some(15..) => Check::new("version", short, Grade::Good, "tested: 15 and 18"),
        _ => Check::new("version", short, Grade::Bad, "older than what is tested; upgrade to PostgreSQL 15 or later"),
    }
}

async fn clock(client: &Client, now: impl Fn() -> Timestamp) -> Result<Check, UnusableDatabase> {
    let before = now().as_millis();
    let theirs: i64 =
        client.query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::BIGINT", &[]).await?.try_get(0)?;
    // The server read its clock about half way through the round trip.
    Ok(clock_skew(theirs, before.midpoint(now().as_millis())))
}

fn durable(setting: &'static str, value: &str) -> Check {
    match (setting, value) {
        ("synchronous_commit", "off" | "local" | "remote_write") => {
            let meaning = "an acknowledged commit may be lost when the machine fails: set it to on";
            Check::new(setting, value, Grade::Bad, meaning)
        }
        (_, "off") => {
            Check::new(setting, value, Grade::Bad, "a crash of the machine may lose or damage the database: turn it on")
        }
        _ => Check::new(setting, value, Grade::Good, "what is acknowledged survives a crash of the machine"),
    }
}

async fn schema(client: &Client, options: &ConnectOptions) -> Result<Check, UnusableDatabase> {
    match check(client, options.dialect).await {
        Ok(()) => Ok(Check::new("schema", "current", Grade::Good, "it fits this lockgate")),
        Err(UnusableDatabase::Older { found, known }) => {
            let found = format!("{found} of {known}");
            Ok(Check::new("schema", found, Grade::Notice, "run `lockgate migrate`, or let `lockgate serve` do it"))
        }
        Err(error @ (UnusableDatabase::Newer { .. } | UnusableDatabase::Changed { .. })) => {
            Ok(Check::new("schema", "another", Grade::Bad, error.to_string()))
        }
        Err(error) => Err(error),
    }
}

fn connections(most: &str, options: &ConnectOptions) -> Check {
    let own = options.writers + options.readers;
    let processes = most.parse::<usize>().unwrap_or(0) / own.max(1);
    let grade = if processes < 4 { Grade::Notice } else { Grade::Good };
    Check::new("max_connections", most, grade, format!("a process uses {own}: room for about {processes} processes"))
}

/// A transaction open for this long pins more dead rows than vacuuming is tuned for.
const PINNED_NOTICE_SECONDS: i64 = 60;
const PINNED_BAD_SECONDS: i64 = 600;
/// For a replication slot only the number of transactions is known, not the time.
const PINNED_NOTICE_TRANSACTIONS: i64 = 1_000_000;

/// Finds what pins the xmin horizon: vacuum cannot remove rows deleted after it, and every read of a queue walks over them.
async fn horizon(client: &Client) -> Result<Check, UnusableDatabase> {
    let what = "xmin horizon";
    let Some(row) = client.query_opt(include_str!("../queries/horizon_postgres.sql"), &[]).await? else {
        return Ok(Check::new(what, "free", Grade::Good, "dead rows can be removed"));
    };
    let (holder, seconds): (String, Option<i64>) = (row.try_get(0)?, row.try_get(1)?);
    let (transactions, dead): (Option<i64>, i64) = (row.try_get(2)?, row.try_get(3)?);
    let found = match seconds {
        Some(seconds) => format!("held for {seconds} s by {holder}"),
        None => format!("held for {} transactions by {holder}", transactions.unwrap_or_default()),
    };
    let grade = pinned(seconds, transactions);
    let meaning = match grade {
        Grade::Good => "dead rows can be removed soon".to_owned(),
        Grade::Notice | Grade::Bad => format!(
            "dead rows cannot be removed while it is there, {dead} so far, and claims slow down: end it (pg_terminate_backend, \
             ROLLBACK PREPARED, pg_drop_replication_slot)"
        ),
    };
    Ok(Check::new(what, found, grade, meaning))
}

fn pinned(seconds: Option<i64>, transactions: Option<i64>) -> Grade {
    match seconds {
        Some(PINNED_BAD_SECONDS..) => Grade::Bad,
        Some(PINNED_NOTICE_SECONDS..) => Grade::Notice,
        None if transactions.is_some_and(|count| count >= PINNED_NOTICE_TRANSACTIONS) => Grade::Notice,
        Some(_) | None => Grade::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_graded_by_what_was_tested() {
        let grade = |text: &str| version(text).grade;
        assert_eq!(grade("PostgreSQL 15.18 (Debian) on x86_64, compiled by gcc"), Grade::Good);
        assert_eq!(grade("PostgreSQL 14.2 on x86_64"), Grade::Bad);
        assert_eq!(grade("CockroachDB CCL v26.3.0 (x86_64)"), Grade::Notice);
    }

    #[test]
    fn a_pinned_horizon_is_graded_by_how_long_it_is() {
        assert_eq!([5, 60, 600].map(|seconds| pinned(Some(seconds), None)), [Grade::Good, Grade::Notice, Grade::Bad]);
        assert_eq!([10, 1_000_000].map(|count| pinned(None, Some(count))), [Grade::Good, Grade::Notice]);
    }

    #[test]
    fn a_database_that_forgets_is_bad() {
        assert_eq!(durable("fsync", "off").grade, Grade::Bad);
        assert_eq!(durable("synchronous_commit", "off").grade, Grade::Bad);
        assert_eq!(durable("synchronous_commit", "on").grade, Grade::Good);
    }
}

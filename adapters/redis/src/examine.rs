//! Examines a server: what its settings mean for Lockgate's guarantees.

use std::collections::BTreeMap;

use lockgate_core::time::Timestamp;
use lockgate_ports::checkup::{Check, Grade, clock_skew};
use redis::aio::MultiplexedConnection;

use crate::error::ConnectError;
use crate::options::Options;
use crate::server_client::ServerClient;

/// Every check, in a fixed order. `now` is this process's time.
pub async fn examine(options: &Options, now: impl Fn() -> Timestamp) -> Result<Vec<Check>, ConnectError> {
    let way = ServerClient::of(options)?;
    let connecting = tokio::time::timeout(options.response_timeout * 4, way.client.get_multiplexed_async_connection());
    let connected = connecting.await.map_err(|_| ConnectError::Unreachable("no answer".to_owned()))?;
    let mut connection = connected.map_err(|error| way.refused(error))?;
    let info: String = redis::cmd("INFO").query_async(&mut connection).await.map_err(|error| way.refused(error))?;
    let info = fields(&info);
    let mut checks = vec![version(&info), role(&info)];
    checks.push(clock(&mut connection, now).await?);
    checks.push(eviction(&mut connection).await);
    Ok(checks)
}

fn unreachable(error: &redis::RedisError) -> ConnectError {
    ConnectError::Unreachable(error.to_string())
}

fn fields(info: &str) -> BTreeMap<&str, &str> {
    info.lines().filter_map(|line| line.trim().split_once(':')).collect()
}

fn version(info: &BTreeMap<&str, &str>) -> Check {
    let (product, version) = match info.get("valkey_version") {
        Some(version) => ("Valkey", *version),
        None => ("Redis", info.get("redis_version").copied().unwrap_or("?")),
    };
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok()).unwrap_or(0);
    let found = format!("{product} {version}");
    match major {
        7.. => Check::new("version", found, Grade::Good, "tested: Redis 7, Valkey 9"),
        _ => Check::new("version", found, Grade::Notice, "older than what is tested; Redis 7 or later is"),
    }
}

fn role(info: &BTreeMap<&str, &str>) -> Check {
    match info.get("role").copied() {
        Some("master") => Check::new("role", "master", Grade::Good, "it takes writes"),
        role => Check::new("role", role.unwrap_or("?"), Grade::Bad, "it takes no writes: name the master"),
    }
}

async fn clock(connection: &mut MultiplexedConnection, now: impl Fn() -> Timestamp) -> Result<Check, ConnectError> {
    let before = now().as_millis();
    let (seconds, micros): (i64, i64) =
        redis::cmd("TIME").query_async(connection).await.map_err(|error| unreachable(&error))?;
    Ok(clock_skew(seconds * 1_000 + micros / 1_000, before.midpoint(now().as_millis())))
}

async fn eviction(connection: &mut MultiplexedConnection) -> Check {
    const WHAT: &str = "maxmemory-policy";
    let answer = redis::cmd("CONFIG").arg("GET").arg(WHAT).query_async::<Vec<String>>(connection).await;
    match answer.ok().and_then(|pair| pair.into_iter().nth(1)).as_deref() {
        Some("noeviction") => Check::new(WHAT, "noeviction", Grade::Good, "nothing is thrown away behind our back"),
        Some(other) => {
            let meaning = "it may throw queues away, which costs rebuilding them: CONFIG SET maxmemory-policy noeviction";
            Check::new(WHAT, other, Grade::Bad, meaning)
        }
        None => Check::new(WHAT, "not shown", Grade::Notice, "CONFIG is forbidden here; see to it that it is noeviction"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_roles_are_told_apart() {
        let info = |text: &'static str| fields(text);
        assert_eq!(version(&info("redis_version:7.0.15")).found, "Redis 7.0.15");
        assert_eq!(version(&info("redis_version:7.2.4\r\nvalkey_version:9.1.2")).found, "Valkey 9.1.2");
        assert_eq!(version(&info("redis_version:6.2.1")).grade, Grade::Notice);
        assert_eq!(role(&info("role:slave")).grade, Grade::Bad);
    }
}

//! The connections of one process to the servers of its cluster, each over a wire of its own, so that a single process can
//! be cut off from a single server.

use std::net::SocketAddr;

use super::proxy::Wire;
use crate::error::CliError;
use crate::servers::ServerAddresses;

pub(super) struct Ways {
    pub(super) postgres: Wire,
    pub(super) redis: Wire,
    pub(super) nats: Wire,
}

impl Ways {
    /// Wires to the servers, and the arguments for a process to use them.
    pub(super) async fn to(servers: &ServerAddresses) -> Result<(Self, Vec<String>), CliError> {
        let [database_url, redis_url, nats_urls] = servers.addresses();
        let (postgres, database_url) = wired(&database_url).await?;
        let (redis, redis_url) = wired(&redis_url).await?;
        // One server is enough: the others of its cluster are not led over a wire.
        let first = nats_urls.split(',').next().unwrap_or_default();
        let (nats, nats_url) = wired(first).await?;
        Ok((Self { postgres, redis, nats }, servers.words_at([database_url, redis_url, nats_url])))
    }
}

/// A wire to the server of a URL, and the URL over it.
async fn wired(url: &str) -> Result<(Wire, String), CliError> {
    let unusable = || CliError::Usage(format!("{url:?} has no plain host:port; chaos puts a wire before it"));
    let place = place(url).ok_or_else(unusable)?;
    let far = tokio::net::lookup_host(place).await?.next().ok_or_else(unusable)?;
    let wire = Wire::to(far).await?;
    let over = url.replacen(place, &wire.address.to_string(), 1);
    Ok((wire, over))
}

/// The host and port in a URL.
fn place(url: &str) -> Option<&str> {
    let authority = url.split_once("://")?.1.split(['/', '?']).next()?;
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    place.contains(':').then_some(place)
}

pub(super) fn address(api: &str) -> Result<SocketAddr, CliError> {
    let place = place(api).and_then(|place| place.parse().ok());
    place.ok_or_else(|| CliError::Server(format!("the server said that it listens on {api:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_in_a_url_is_found_whatever_stands_around_it() {
        assert_eq!(place("postgres://user:a@b@127.0.0.1:5432/db?x=y"), Some("127.0.0.1:5432"));
        assert_eq!(place("redis://localhost:6379"), Some("localhost:6379"));
        assert_eq!(place("http://127.0.0.1:80/"), Some("127.0.0.1:80"));
        assert_eq!(place("postgres:///db?host=/run"), None);
    }
}

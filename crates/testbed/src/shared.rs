//! One PostgreSQL for the tests of many processes.

use anyhow::Context;

use crate::postgres::Postgres;

/// Names a server that is running already: starting one for each test costs more than most tests.
pub const SHARED_POSTGRES: &str = "LOCKGATE_TEST_POSTGRES_URL";

/// The server that [`SHARED_POSTGRES`] names, or one of its own. Its users keep to schemas of their own and leave it running.
#[derive(Debug)]
pub struct SharedPostgres {
    url: String,
    port: u16,
    _own: Option<Postgres>,
}

impl SharedPostgres {
    pub fn get() -> anyhow::Result<Self> {
        let Some(url) = std::env::var_os(SHARED_POSTGRES).map(|url| url.to_string_lossy().into_owned()) else {
            let own = Postgres::start()?;
            return Ok(Self { url: own.url(), port: own.port(), _own: Some(own) });
        };
        let port = url.rsplit_once(':').and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        let port = port.with_context(|| format!("{SHARED_POSTGRES} has no port: {url}"))?;
        Ok(Self { url, port, _own: None })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    pub fn port(&self) -> u16 {
        self.port
    }
}

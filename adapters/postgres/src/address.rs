//! From a URL to options: whose SQL it speaks is asked once.

use tokio_postgres::Config;

use crate::conn::dial;
use crate::error::{ConnectError, told};
use crate::options::{Dialect, Options};

impl Options {
    /// From a URL such as `postgres://user:password@host/database`. Connects once, to learn whose database it is.
    pub async fn of(url: &str) -> Result<Self, ConnectError> {
        let config: Config = url.parse().map_err(|error: tokio_postgres::Error| ConnectError::Url(error.to_string()))?;
        let mut options = Self::new(config);
        let unreachable = |why: String| ConnectError::Unreachable(why);
        let dialled = tokio::time::timeout(options.deadline, dial(&options.config)).await;
        let dialled = dialled.map_err(|_| unreachable("it does not answer".to_owned()))?;
        let (client, _driver) = dialled.map_err(|error| unreachable(told(&error)))?;
        let product: String = client.query_one("SELECT version()", &[]).await?.try_get(0)?;
        if product.contains("CockroachDB") {
            options.dialect = Dialect::Cockroach;
        }
        Ok(options)
    }
}

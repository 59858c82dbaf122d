//! From a URL to options: whose SQL it speaks is asked once.

use lockgate_tls::{Clear, Tls};

use crate::error::UnusableDatabase;
use crate::options::{ConnectOptions, Dialect};
use crate::wire::secure;

impl ConnectOptions {
    /// From a URL such as `postgres://user:password@host/database?sslmode=verify-full`. Connects once, to learn whose database
    /// it is.
    ///
    /// `require` and `verify-full` are the same here: TLS, and a certificate of a believed authority for the host of the
    /// address. `verify-ca` takes any name, of an authority that `tls` must have. `disable` is for this machine, or where `clear`
    /// allows it. Without `sslmode` there is TLS whenever `disable` would not be allowed, or `tls` has files.
    pub async fn of(url: &str, tls: &Tls, clear: Clear) -> Result<Self, UnusableDatabase> {
        let (config, wire) = secure(url, tls, clear)?;
        let mut options = Self { wire, ..Self::new(config) };
        let dialled = tokio::time::timeout(options.deadline, options.wire.dial(&options.config)).await;
        let dialled = dialled.unwrap_or_else(|_| Err("it does not answer".to_owned()));
        let (client, _driver) = dialled.map_err(UnusableDatabase::Unreachable)?;
        let product: String = client.query_one("SELECT version()", &[]).await?.try_get(0)?;
        if product.contains("CockroachDB") {
            options.dialect = Dialect::Cockroach;
        }
        Ok(options)
    }
}

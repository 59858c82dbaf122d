//! Turns a database URL into connect options. The SQL dialect is found out by one connection.

use lockgate_tls::{Clear, Tls};

use crate::error::UnusableDatabase;
use crate::options::{ConnectOptions, Dialect};
use crate::wire::secure;

impl ConnectOptions {
    /// Options from a URL such as `postgres://user:password@host/database?sslmode=verify-full`. Connects once, to learn
    /// whether PostgreSQL or CockroachDB answers.
    ///
    /// `require` and `verify-full` mean the same here: TLS, and a certificate of a trusted authority for the host of the
    /// address. `verify-ca` accepts any host name, but requires that `tls` names the authority. `disable` is accepted for
    /// this machine, or where `clear` allows it. Without `sslmode` TLS is used whenever `disable` would not be accepted, or
    /// `tls` has files.
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

//! The transport to the database: TLS or clear text.

use std::error::Error;

use lockgate_tls::{Clear, Tls, is_here};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::{Client, Config, Connection, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{UnusableDatabase, told};

/// The protocol name that PostgreSQL 17 and later require with `sslnegotiation=direct`; other servers ignore it.
const ALPN: &[u8] = b"postgresql";

/// Clear text by default.
#[derive(Clone, Default)]
pub struct WireSecurity(Option<Secured>);

#[derive(Clone)]
struct Secured {
    connector: MakeRustlsConnect,
    tls: Tls,
}

/// What is verified of a server's certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ServerCheck {
    /// Nothing: the connection is not encrypted.
    Clear,
    /// Its authority.
    Authority,
    /// Its authority, and that it is for the host of the address.
    Name,
}

/// Parses the address and enforces its `sslmode`. The driver knows only some of the modes, and its default may fall back to
/// clear text.
pub(crate) fn secure(url: &str, tls: &Tls, clear: Clear) -> Result<(Config, WireSecurity), UnusableDatabase> {
    let (rest, mode) = without_mode(url);
    let mut config: Config = rest.parse().map_err(|error: tokio_postgres::Error| UnusableDatabase::Url(told(&error)))?;
    // `sslmode` is written in a form that only the driver parses. Refused, because the mode would otherwise not be enforced.
    if mode.is_none() && config.get_ssl_mode() != SslMode::Prefer {
        return Err(UnusableDatabase::Mode("one that is written unusually".to_owned()));
    }
    let guard = guard(mode.as_deref(), stays_here(&config), tls, clear)?;
    let settings = match guard {
        ServerCheck::Clear => None,
        ServerCheck::Name => Some(tls.config()),
        ServerCheck::Authority => Some(tls.config_for_any_name().map_err(UnusableDatabase::Tls)?),
    };
    config.ssl_mode(if settings.is_some() { SslMode::Require } else { SslMode::Disable });
    let secured = settings.map(|mut settings| {
        settings.alpn_protocols = vec![ALPN.to_vec()];
        Secured { connector: MakeRustlsConnect::new(settings), tls: tls.clone() }
    });
    Ok((config, WireSecurity(secured)))
}

fn guard(mode: Option<&str>, here: bool, tls: &Tls, clear: Clear) -> Result<ServerCheck, UnusableDatabase> {
    let may_be_read = here || clear == Clear::Anywhere;
    match mode {
        Some("require" | "verify-full") => Ok(ServerCheck::Name),
        Some("verify-ca") if tls.has_authority() => Ok(ServerCheck::Authority),
        Some("verify-ca") => Err(UnusableDatabase::NoAuthority),
        Some("disable") if tls.is_given() => Err(UnusableDatabase::Contradiction),
        Some("disable") if may_be_read => Ok(ServerCheck::Clear),
        Some("disable") => Err(UnusableDatabase::InTheClear),
        None if tls.is_given() || !may_be_read => Ok(ServerCheck::Name),
        None => Ok(ServerCheck::Clear),
        Some(other) => Err(UnusableDatabase::Mode(other.to_owned())),
    }
}

/// Splits the address into the part without `sslmode` and the mode. Both forms are read: a URL, and words like `host=…
/// dbname=…`.
fn without_mode(url: &str) -> (String, Option<String>) {
    let mut mode = None;
    let mut keep = |part: &&str| match part.strip_prefix("sslmode=") {
        Some(value) => {
            mode = Some(value.trim_matches('\'').to_owned());
            false
        }
        None => true,
    };
    let rest = match url.split_once('?') {
        Some((head, query)) if head.contains("://") => {
            let query: Vec<&str> = query.split('&').filter(&mut keep).collect();
            if query.is_empty() { head.to_owned() } else { format!("{head}?{}", query.join("&")) }
        }
        _ if url.contains("://") => url.to_owned(),
        _ => url.split(' ').filter(&mut keep).collect::<Vec<_>>().join(" "),
    };
    (rest, mode)
}

fn stays_here(config: &Config) -> bool {
    let host = |host: &Host| match host {
        Host::Tcp(name) => is_here(name),
        Host::Unix(_) => true,
    };
    match config.get_hostaddrs() {
        [] => config.get_hosts().iter().all(host),
        addresses => addresses.iter().all(std::net::IpAddr::is_loopback),
    }
}

impl WireSecurity {
    /// None for clear text.
    pub fn tls(&self) -> Option<&Tls> {
        self.0.as_ref().map(|secured| &secured.tls)
    }

    /// Opens a connection and spawns the task that drives it; the error says why it failed.
    pub(crate) async fn dial(&self, config: &Config) -> Result<(Client, JoinHandle<()>), String> {
        match &self.0 {
            None => {
                config.connect(NoTls).await.map(|(client, connection)| (client, drive(connection))).map_err(|e| told(&e))
            }
            Some(Secured { connector, tls }) => {
                let connected = config.connect(connector.clone()).await;
                let why = |error: tokio_postgres::Error| {
                    let said = error.as_db_error().is_some();
                    let explained = if said { None } else { tls.explain(&error as &(dyn Error + 'static)) };
                    explained.unwrap_or_else(|| told(&error))
                };
                connected.map(|(client, connection)| (client, drive(connection))).map_err(why)
            }
        }
    }
}

fn drive<S, T>(connection: Connection<S, T>) -> JoinHandle<()>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(error = %told(&error), "a connection to the database has ended");
        }
    })
}

#[cfg(test)]
mod tests {
    use lockgate_tls::{FileNames, TlsPaths};

    use super::*;

    fn public() -> Tls {
        let names = FileNames { ca: "DATABASE_TLS_CA", cert: "DATABASE_TLS_CERT", key: "DATABASE_TLS_KEY" };
        TlsPaths::default().read(names).unwrap()
    }

    #[test]
    fn the_mode_is_taken_out_of_both_forms_of_an_address() {
        let cases = [
            ("postgres://u:p@h/d?sslmode=require", "postgres://u:p@h/d", Some("require")),
            ("postgres://h/d?a=b&sslmode=disable&c=d", "postgres://h/d?a=b&c=d", Some("disable")),
            ("postgres://h/d", "postgres://h/d", None),
            ("host=h sslmode='verify-full' dbname=d", "host=h dbname=d", Some("verify-full")),
        ];
        for (url, rest, mode) in cases {
            assert_eq!(without_mode(url), (rest.to_owned(), mode.map(str::to_owned)), "{url}");
        }
    }

    #[test]
    fn nothing_travels_in_the_clear_to_another_machine_unless_somebody_insists() {
        let tls = public();
        let of = |url: &str, clear| secure(url, &tls, clear).map(|(_, wire)| wire.0.is_some());
        for url in ["postgres://localhost/d", "postgres://127.0.0.1/d?sslmode=disable", "host=/run/postgresql dbname=d"] {
            assert!(!of(url, Clear::HereOnly).unwrap(), "{url}");
        }
        for url in ["postgres://db/d", "postgres://db/d?sslmode=require", "postgres://localhost,db/d"] {
            assert!(of(url, Clear::HereOnly).unwrap(), "{url}");
        }
        assert!(!of("postgres://db/d", Clear::Anywhere).unwrap());
        let refused = of("postgres://db/d?sslmode=disable", Clear::HereOnly);
        assert!(matches!(refused, Err(UnusableDatabase::InTheClear)));
        let hidden = of("postgres://localhost/d?hostaddr=10.0.0.1&sslmode=disable", Clear::HereOnly);
        assert!(matches!(hidden, Err(UnusableDatabase::InTheClear)), "the address counts, not the name");
    }

    #[test]
    fn a_mode_that_promises_nothing_is_refused() {
        let of =
            |url: &str| secure(url, &public(), Clear::Anywhere).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(of("postgres://db/d?sslmode=prefer").contains("sslmode=prefer"));
        assert!(of("postgres://db/d?sslmode=verify-ca").contains("DATABASE_TLS_CA"));
    }
}

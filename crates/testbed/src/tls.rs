//! Servers that speak TLS and ask their clients for certificates, with an authority made for the test.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;

use crate::folder;
use crate::nats::Nats;
use crate::postgres::{self, Durability, Postgres};
use crate::redis::Redis;

/// An authority, a certificate of its making for servers at `localhost`, and one for clients. Files, gone when dropped.
pub struct Papers {
    folder: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

/// The files of a certificate and its key.
#[derive(Clone, Debug)]
pub struct CertificatePair {
    pub cert: PathBuf,
    pub key: PathBuf,
}

impl Papers {
    pub fn new() -> anyhow::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "an authority for tests");
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let folder = folder::fresh()?;
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        std::fs::write(folder.path().join("ca.pem"), authority.pem())?;
        let papers = Self { folder, authority };
        papers.issue("server", &["localhost"])?;
        papers.issue("client", &["client.test"])?;
        Ok(papers)
    }

    /// Makes a certificate for these names, in files called `name`.
    pub fn issue(&self, name: &str, names: &[&str]) -> anyhow::Result<CertificatePair> {
        let mut params = CertificateParams::new(names.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate()?;
        let pair = self.pair(name);
        std::fs::write(&pair.cert, params.signed_by(&key, &self.authority)?.pem())?;
        std::fs::write(&pair.key, key.serialize_pem())?;
        std::fs::set_permissions(&pair.key, Permissions::from_mode(0o600))?;
        Ok(pair)
    }

    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    pub fn server(&self) -> CertificatePair {
        self.pair("server")
    }

    pub fn client(&self) -> CertificatePair {
        self.pair("client")
    }

    fn pair(&self, name: &str) -> CertificatePair {
        CertificatePair { cert: self.path(&format!("{name}.pem")), key: self.path(&format!("{name}.key")) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

impl Postgres {
    /// Only over TLS, and only with a certificate.
    pub fn start_tls(papers: &Papers) -> anyhow::Result<Self> {
        let CertificatePair { cert, key } = papers.issue("postgres", &["localhost"])?;
        // It reads its key only if the file is its own.
        if let Some((uid, gid)) = postgres::owner()? {
            chown(&key, Some(uid), Some(gid))?;
        }
        let access = papers.path("pg_hba.conf");
        std::fs::write(&access, "hostssl all all 127.0.0.1/32 trust clientcert=verify-ca\n")?;
        let setting = |name: &str, path: &Path| format!("{name}={}", path.display());
        let settings = [
            "ssl=on".to_owned(),
            setting("ssl_cert_file", &cert),
            setting("ssl_key_file", &key),
            setting("ssl_ca_file", &papers.ca()),
            setting("hba_file", &access),
        ];
        Self::start_with(Durability::Unsynced, &settings.each_ref().map(String::as_str))
    }

    /// By the name that its certificate has.
    pub fn tls_url(&self) -> String {
        format!("postgres://lockgate@localhost:{}/postgres?sslmode=verify-full", self.port())
    }
}

impl Redis {
    /// Only over TLS, and only with a certificate.
    pub fn start_tls(papers: &Papers) -> anyhow::Result<Self> {
        let CertificatePair { cert, key } = papers.server();
        let file = |path: &Path| path.display().to_string();
        Self::start_with(vec![
            ("--tls-cert-file", file(&cert)),
            ("--tls-key-file", file(&key)),
            ("--tls-ca-cert-file", file(&papers.ca())),
            ("--tls-auth-clients", "yes".to_owned()),
        ])
    }

    /// By the name that its certificate has.
    pub fn tls_url(&self) -> String {
        format!("rediss://localhost:{}/", self.port())
    }
}

impl Nats {
    /// Only over TLS, and only with a certificate.
    pub fn start_tls(papers: &Papers) -> anyhow::Result<Self> {
        let CertificatePair { cert, key } = papers.server();
        let file = |path: &Path| path.display().to_string();
        let args = ["--tlsverify".to_owned()].into_iter();
        let files = [("--tlscert", file(&cert)), ("--tlskey", file(&key)), ("--tlscacert", file(&papers.ca()))];
        Self::start_with(args.chain(files.into_iter().flat_map(|(name, file)| [name.to_owned(), file])).collect())
    }

    /// By the name that its certificate has.
    pub fn tls_url(&self) -> String {
        format!("tls://localhost:{}", self.port())
    }
}

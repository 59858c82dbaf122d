//! Authentication: credentials, tokens of an external issuer, TLS.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use lockgate_core::access::{ApiKey, Credential, CredentialKind, DigestKey, Grant, Reach, Role};
use lockgate_core::ids::ActorId;
use lockgate_gateway::{AccessMode, Entrance, ListenerTls};
use lockgate_jwt::{JwtSettings, JwtTokens, KeySource};
use lockgate_ports::{Clock, Entropy, Tokens};

use super::keyfile;
use crate::error::CliError;

const HEADING: &str = "Identity";

#[derive(Args, Debug)]
pub(crate) struct IdentityArgs {
    /// Ask everybody for a credential; the first start prints a key for the administrator
    #[arg(long, env = "LOCKGATE_AUTH", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = HEADING)]
    pub(super) auth: bool,

    /// Make another key for the administrator at this start, for an installation whose administrators lost theirs; it is
    /// printed and put where the first one was
    #[arg(long, requires = "auth", help_heading = HEADING)]
    pub(super) new_admin_key: bool,

    /// File with 64 hexadecimal digits that protect stored keys, the same on every replica; a server with a data folder of
    /// its own makes one there
    #[arg(long, env = "LOCKGATE_AUTH_SECRET", hide_env_values = true, value_name = "FILE", help_heading = HEADING)]
    auth_secret: Option<PathBuf>,

    /// Whose bearer tokens (JWT) are taken: their `iss`
    #[arg(long, env = "LOCKGATE_JWT_ISSUER", hide_env_values = true, requires_all = ["jwt_audience", "jwt_keys"],
        value_name = "TEXT", help_heading = HEADING)]
    jwt_issuer: Option<String>,

    /// Whom tokens must be meant for: their `aud`
    #[arg(long, env = "LOCKGATE_JWT_AUDIENCE", hide_env_values = true, requires = "jwt_issuer", value_name = "TEXT",
        help_heading = HEADING)]
    jwt_audience: Option<String>,

    /// What tokens are checked with: a file with a JWK set or a PEM public key, or the URL of a JWK set
    #[arg(long, env = "LOCKGATE_JWT_KEYS", hide_env_values = true, requires = "jwt_issuer", value_name = "FILE|URL",
        help_heading = HEADING)]
    jwt_keys: Option<String>,

    /// Authority of the https server that has the JWK set, PEM; the public ones unless given
    #[arg(long, env = "LOCKGATE_JWT_CA", hide_env_values = true, requires = "jwt_keys", value_name = "FILE",
        help_heading = HEADING)]
    jwt_ca: Option<PathBuf>,

    /// Certificate chain of this server, PEM; read again when it changes
    #[arg(long, env = "LOCKGATE_TLS_CERT", hide_env_values = true, requires = "tls_key", value_name = "FILE",
        help_heading = HEADING)]
    tls_cert: Option<PathBuf>,

    /// Private key of the certificate, PEM
    #[arg(long, env = "LOCKGATE_TLS_KEY", hide_env_values = true, requires = "tls_cert", value_name = "FILE",
        help_heading = HEADING)]
    tls_key: Option<PathBuf>,

    /// Authority whose client certificates are believed, PEM; `lockgate auth certificate bind` says whom they let in
    #[arg(long, env = "LOCKGATE_TLS_CLIENT_CA", hide_env_values = true, requires = "tls_cert",
        value_name = "FILE", help_heading = HEADING)]
    tls_client_ca: Option<PathBuf>,

    /// Let keys travel in the clear on other than loopback addresses, as behind a proxy that speaks TLS
    #[arg(long, help_heading = HEADING)]
    insecure_plaintext: bool,
}

/// The access control of the API, and the key of the built-in worker.
pub(super) struct ServerAccess {
    pub(super) access: AccessMode,
    pub(super) inside: Option<ApiKey>,
}

impl IdentityArgs {
    /// Refuses settings that need authentication. Checks values and not presence, because a variable may switch a setting
    /// off.
    pub(super) fn check(&self, no_auth: bool) -> Result<(), CliError> {
        if self.auth {
            let text = "--auth and --insecure-no-auth contradict each other".to_owned();
            return if no_auth { Err(CliError::Usage(text)) } else { Ok(()) };
        }
        let given = [
            ("--auth-secret", self.auth_secret.is_some()),
            ("--jwt-issuer", self.jwt_issuer.is_some()),
            ("--tls-client-ca", self.tls_client_ca.is_some()),
            ("--insecure-plaintext", self.insecure_plaintext),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(CliError::Usage(format!("{flag} does nothing without --auth"))),
            None => Ok(()),
        }
    }

    /// Without authentication only this machine may connect, unless a flag allows more; and keys are never sent unencrypted.
    pub(super) fn check_address(&self, flag: &str, address: SocketAddr, no_auth: bool) -> Result<(), CliError> {
        if address.ip().is_loopback() || no_auth || self.insecure_plaintext {
            return Ok(());
        }
        let port = address.port();
        if !self.auth {
            return Err(CliError::Usage(format!(
                "{flag} {address} can be reached from other machines, and nobody is asked for a credential; add --auth with \
                 --tls-cert and --tls-key, use a loopback address such as 127.0.0.1:{port}, or insist with \
                 --insecure-no-auth"
            )));
        }
        if self.speaks_tls() {
            return Ok(());
        }
        Err(CliError::Usage(format!(
            "{flag} {address} can be reached from other machines, and keys would travel in the clear; add --tls-cert and \
             --tls-key, use a loopback address such as 127.0.0.1:{port}, or insist with --insecure-plaintext"
        )))
    }

    pub(super) fn identity(
        &self,
        data: &Path,
        shared: bool,
        clock: &dyn Clock,
        entropy: &dyn Entropy,
    ) -> Result<ServerAccess, CliError> {
        if !self.auth {
            return Ok(ServerAccess { access: AccessMode::Open, inside: None });
        }
        let digest = DigestKey::new(self.secret(data, shared, entropy)?);
        let mut random = [0; ApiKey::RANDOM_BYTES];
        entropy.fill(&mut random);
        let key = ApiKey::new(random);
        let inside = Some(insider(&key, &digest, clock));
        let entrance = Entrance { digest, tokens: self.tokens()?, inside };
        Ok(ServerAccess { access: AccessMode::Closed(Arc::new(entrance)), inside: Some(key) })
    }

    fn secret(&self, data: &Path, shared: bool, entropy: &dyn Entropy) -> Result<[u8; 32], CliError> {
        if let Some(path) = &self.auth_secret {
            return keyfile::given(path);
        }
        if shared {
            let text = "--auth on shared servers needs --auth-secret: a file that is the same on every replica, such as \
                        `openssl rand -hex 32` makes";
            return Err(CliError::Usage(text.to_owned()));
        }
        let mut fresh = [0; 32];
        entropy.fill(&mut fresh);
        keyfile::kept(&data.join("auth.key"), fresh, "every API key must be made anew")
    }

    pub(super) fn tls(&self) -> Result<Option<ListenerTls>, CliError> {
        let (Some(cert), Some(key)) = (&self.tls_cert, &self.tls_key) else { return Ok(None) };
        let tls = ListenerTls::load(cert.clone(), key.clone(), self.tls_client_ca.clone());
        tls.map(Some).map_err(|error| CliError::Usage(error.to_string()))
    }

    pub(super) const fn speaks_tls(&self) -> bool {
        self.tls_cert.is_some()
    }

    fn tokens(&self) -> Result<Option<Arc<dyn Tokens>>, CliError> {
        let (Some(issuer), Some(audience), Some(keys)) = (&self.jwt_issuer, &self.jwt_audience, &self.jwt_keys) else {
            return Ok(None);
        };
        let keys = match keys.contains("://") {
            true => KeySource::Url(keys.clone()),
            false => KeySource::File(keys.into()),
        };
        if self.jwt_ca.is_some() && matches!(keys, KeySource::File(_)) {
            return Err(CliError::Usage("--jwt-ca does nothing with a file of keys: --jwt-keys must be a URL".to_owned()));
        }
        let ca = self.jwt_ca.clone();
        let tokens = JwtTokens::new(JwtSettings { ca, ..JwtSettings::new(issuer, audience, keys) });
        Ok(Some(Arc::new(tokens.map_err(|error| CliError::Usage(error.to_string()))?)))
    }
}

/// The built-in worker's credential: not stored, valid for the life of this process.
fn insider(key: &ApiKey, digest: &DigestKey, clock: &dyn Clock) -> Credential {
    let actor = ActorId::from("built-in");
    Credential {
        id: key.id.clone(),
        kind: CredentialKind::Key { digest: digest.digest(key) },
        actor: actor.clone(),
        actor_type: Some("service".into()),
        grant: Grant { reach: Reach::Everyone, roles: [Role::Worker].into(), pools: Default::default(), payloads: false },
        created_at: clock.now(),
        created_by: actor,
        ends_at: None,
    }
}

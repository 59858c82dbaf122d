//! A server that asks for credentials.

use std::ops::Deref;
use std::sync::Arc;

use lockgate_core::access::{DigestKey, Grant, Identity, Reach};
use lockgate_engine::NewCredential;
use lockgate_gateway::{AccessMode, Entrance, GatewaySettings};
use lockgate_ports::Tokens;
use serde_json::Value;

use super::{Reply, Server, Stage};

const DIGEST: [u8; 32] = [9; 32];

pub(crate) struct Closed {
    server: Server,
    pub(crate) admin: Identity,
    pub(crate) admin_key: String,
}

impl Deref for Closed {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl Closed {
    pub(crate) async fn start() -> Self {
        Self::start_with(Self::settings()).await
    }

    /// One that takes the tokens of an issuer too.
    pub(crate) async fn trusting(tokens: Arc<dyn Tokens>) -> Self {
        let entrance = Entrance { digest: DigestKey::new(DIGEST), tokens: Some(tokens), inside: None };
        Self::start_with(GatewaySettings { access: AccessMode::Closed(Arc::new(entrance)), ..GatewaySettings::default() })
            .await
    }

    async fn start_with(settings: GatewaySettings) -> Self {
        Self::start_on(Stage::default(), settings).await
    }

    pub(crate) async fn start_on(stage: Stage, settings: GatewaySettings) -> Self {
        let server = Server::start_on(stage, settings).await;
        let made = server.engine.first_key(&DigestKey::new(DIGEST)).await.expect("made").expect("the first");
        assert!(server.engine.keep_admin_key(&made).await.expect("stored"));
        Self { server, admin: made.credential.identity(), admin_key: made.key.reveal() }
    }

    pub(crate) fn settings() -> GatewaySettings {
        let entrance = Entrance { digest: DigestKey::new(DIGEST), tokens: None, inside: None };
        GatewaySettings { access: AccessMode::Closed(Arc::new(entrance)), ..GatewaySettings::default() }
    }

    fn digest() -> DigestKey {
        DigestKey::new(DIGEST)
    }

    /// A key for one role that sees payloads; for everyone if no tenant is named.
    pub(crate) async fn key(&self, role: &str, tenant: Option<&str>) -> String {
        self.key_with(role, tenant, true).await
    }

    pub(crate) async fn key_with(&self, role: &str, tenant: Option<&str>, payloads: bool) -> String {
        let grant = Grant {
            reach: tenant.map_or(Reach::Everyone, |tenant| Reach::Tenant(tenant.into())),
            roles: [role.parse().expect("a role")].into(),
            pools: Default::default(),
            payloads,
        };
        let new = NewCredential { actor: format!("{role}-1"), actor_type: None, grant, lasts: None };
        self.engine.create_key(&self.admin, &Self::digest(), new).await.expect("made").key.reveal()
    }

    pub(crate) async fn get_as(&self, key: &str, path: &str) -> Reply {
        self.send(self.request("GET", path).header("authorization", format!("Bearer {key}")), "").await
    }

    pub(crate) async fn post_as(&self, key: &str, path: &str, body: &Value) -> Reply {
        let request = self.request("POST", path).header("authorization", format!("Bearer {key}"));
        self.send(request.header("content-type", "application/json"), body.to_string()).await
    }
}

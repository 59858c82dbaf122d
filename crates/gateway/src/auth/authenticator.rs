//! From a request to an authenticated caller.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request};
use lockgate_core::access::{ApiKey, Credential, Identity, Permission, Reach};
use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, Engine};
use lockgate_ports::{Clock, StoreError, TokenError};

use super::brake::Brake;
use super::leash::{Leash, Shown};
use super::needs::{self, PermissionScope, RequestClass, RequiredPermission};
use super::{AccessMode, AuthRefusal, Authenticated, Entrance, Unguarded};
use crate::peer::{PeerAddress, PeerCertificate};
use crate::tenant::{self, TENANT};

/// A failed answer takes at least so long: trying many keys one after the other leads nowhere.
const FAILED_AFTER: Duration = Duration::from_millis(200);

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Authenticator {
    engine: Engine,
    clock: Arc<dyn Clock>,
    access: AccessMode,
    brake: Arc<Brake>,
}

impl Authenticator {
    pub(crate) fn new(engine: Engine, clock: Arc<dyn Clock>, access: AccessMode) -> Self {
        Self { engine, clock, access, brake: Arc::default() }
    }

    /// For an answer that goes on, what it hangs by.
    pub(crate) async fn admit<B>(&self, request: &mut Request<B>, is_grpc: bool) -> Result<Option<Leash>, AuthRefusal> {
        let path = request.uri().path();
        let asked = if is_grpc { needs::of_grpc(path) } else { needs::of_rest(request.method(), path) };
        let goes_on = needs::goes_on(path) && matches!(self.access, AccessMode::Closed(_));
        self.check(request, asked).await?;
        let shown = if goes_on { shown(request) } else { None };
        Ok(shown.map(|shown| Leash::new(self.clone(), shown)))
    }

    /// Why a credential no longer counts. Only certain knowledge ends it: while the Store cannot be asked, work goes on.
    pub(super) async fn is_over(&self, shown: &Shown) -> Option<AuthRefusal> {
        let AccessMode::Closed(entrance) = &self.access else { return None };
        let identified = match shown {
            Shown::Bearer(text) => self.of_bearer(entrance, text, || Ok(())).await,
            Shown::Certificate(subject) => self.of_certificate(subject).await,
        };
        identified.err().filter(|refusal| matches!(refusal, AuthRefusal::Bad | AuthRefusal::Token(_)))
    }

    /// For numbers about everybody, which have a port of their own.
    pub(crate) async fn admit_scrape<B>(&self, request: &mut Request<B>) -> Result<(), AuthRefusal> {
        let need = RequiredPermission { permission: Permission::Look, of: PermissionScope::Installation };
        let asked = if request.uri().path() == "/metrics" { RequestClass::Needs(need) } else { RequestClass::Open };
        self.check(request, asked).await
    }

    async fn check<B>(&self, request: &mut Request<B>, asked: RequestClass) -> Result<(), AuthRefusal> {
        let AccessMode::Closed(entrance) = &self.access else {
            request.extensions_mut().insert(Unguarded);
            return Ok(());
        };
        let need = match asked {
            RequestClass::Open => return Ok(()),
            RequestClass::Needs(need) => need,
            // Those outside are not told what there is.
            RequestClass::NoSuchMethod(_) | RequestClass::NoSuchPath => {
                RequiredPermission { permission: Permission::Enter, of: PermissionScope::Tenant }
            }
        };
        let identity = self.identified(entrance, request).await?;
        let admitted = match allowed(&identity, need, request.headers()) {
            Ok(caller) => Authenticated { identity, caller },
            Err(refusal) => {
                self.engine.metrics().access.refused(refusal.code());
                self.engine.note_refused(&identity, request.uri().path(), &refusal.text()).await;
                return Err(refusal);
            }
        };
        match asked {
            RequestClass::NoSuchMethod(allow) => Err(AuthRefusal::NoSuchMethod { allow }),
            RequestClass::NoSuchPath => Err(AuthRefusal::NoSuchPath),
            RequestClass::Open | RequestClass::Needs(_) => {
                request.extensions_mut().insert(admitted);
                Ok(())
            }
        }
    }

    async fn identified<B>(&self, entrance: &Entrance, request: &Request<B>) -> Result<Identity, AuthRefusal> {
        let peer = request.extensions().get::<PeerAddress>();
        let (from, network) = (peer.map(PeerAddress::ip), peer.and_then(PeerAddress::network));
        let certificate = request.extensions().get::<PeerCertificate>();
        let shown = match bearer(request.headers()) {
            Ok(Some(text)) => self.of_bearer(entrance, text, || self.may_look(network)).await,
            Ok(None) => match certificate {
                Some(certificate) => self.of_certificate(&certificate.subject).await,
                None => Err(AuthRefusal::Missing),
            },
            Err(refusal) => Err(refusal),
        };
        match shown {
            Ok(identity) => Ok(Identity { source: from, ..identity }),
            Err(refusal) => Err(self.failed(refusal, from).await),
        }
    }

    /// The answer to a failed authentication, and its delay. A good credential that is known here is never made to wait: others
    /// may share its address.
    async fn failed(&self, refusal: AuthRefusal, from: Option<IpAddr>) -> AuthRefusal {
        // A request without a credential is no guess, and an outage is not the client's fault.
        let guessed = matches!(refusal, AuthRefusal::Bad | AuthRefusal::Token(_));
        let refusal = match from.filter(|_| guessed).and_then(|from| self.brake.failed(from)) {
            Some(wait) => AuthRefusal::Slow(wait),
            None => refusal,
        };
        self.engine.metrics().access.refused(refusal.code());
        tracing::info!(code = refusal.code(), why = refusal.text(), ?from, "authentication failed");
        if guessed && !matches!(refusal, AuthRefusal::Slow(_)) {
            tokio::time::sleep(FAILED_AFTER).await;
        }
        refusal
    }

    /// Whether an unknown id is looked up: not for networks that guess. Behind a proxy on this
    /// machine they could not be told from the others.
    fn may_look(&self, network: Option<IpAddr>) -> Result<(), AuthRefusal> {
        match network.and_then(|network| self.brake.holds_back(network)) {
            Some(wait) => Err(AuthRefusal::Slow(wait)),
            None => Ok(()),
        }
    }

    async fn of_bearer(
        &self,
        entrance: &Entrance,
        text: &str,
        may_look: impl FnOnce() -> Result<(), AuthRefusal>,
    ) -> Result<Identity, AuthRefusal> {
        if !ApiKey::is_meant(text) {
            let Some(tokens) = &entrance.tokens else { return Err(AuthRefusal::Bad) };
            return tokens.verify(text, self.clock.now()).await.map_err(|error| match error {
                TokenError::Unavailable(text) => AuthRefusal::Unavailable(text),
                error => AuthRefusal::Token(error),
            });
        }
        let key = ApiKey::parse(text).map_err(|_| AuthRefusal::Bad)?;
        if let Some(inside) = entrance.inside.as_ref().filter(|inside| opens(entrance, inside, &key)) {
            return Ok(inside.identity());
        }
        self.engine.identify_key_if(&entrance.digest, &key, may_look).await?.ok_or(AuthRefusal::Bad)
    }

    async fn of_certificate(&self, subject: &str) -> Result<Identity, AuthRefusal> {
        self.engine.identify_certificate(subject).await.map_err(|error| away(&error))?.ok_or(AuthRefusal::Bad)
    }
}

/// Who acts: on behalf of one tenant, if the identity reaches it and may do what it asks.
fn allowed(identity: &Identity, need: RequiredPermission, headers: &HeaderMap) -> Result<Caller, AuthRefusal> {
    if !identity.grant.allows(need.permission) {
        return Err(AuthRefusal::lacking(&identity.grant, need.permission));
    }
    if need.of == PermissionScope::Installation && identity.grant.reach != Reach::Everyone {
        return Err(AuthRefusal::too_far());
    }
    let asked = tenant::named(headers, &TENANT).map_err(|error| AuthRefusal::Forbidden(error.to_string()))?;
    let caller = identity.caller(asked.map(TenantId::from).as_ref());
    caller.ok_or_else(|| AuthRefusal::Forbidden("the credential is for another tenant".into()))
}

fn opens(entrance: &Entrance, credential: &Credential, key: &ApiKey) -> bool {
    credential.id == key.id && entrance.digest.matches(key, &credential.kind)
}

/// Strangers are not told how the Store is.
fn away(error: &ApiError) -> AuthRefusal {
    tracing::warn!(%error, "credential lookup failed");
    AuthRefusal::Unavailable("credentials cannot be checked for a moment; try again".into())
}

impl From<StoreError> for AuthRefusal {
    fn from(error: StoreError) -> Self {
        away(&error.into())
    }
}

/// What a request that was let in has shown.
fn shown<B>(request: &Request<B>) -> Option<Shown> {
    match bearer(request.headers()) {
        Ok(Some(text)) => Some(Shown::Bearer(text.into())),
        _ => request.extensions().get::<PeerCertificate>().map(|it| Shown::Certificate(it.subject.clone())),
    }
}

/// What a request shows; at most one credential, so that it is unambiguous.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, AuthRefusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none()).ok_or(AuthRefusal::Bad)?;
    let (scheme, shown) = text.split_once(' ').ok_or(AuthRefusal::Bad)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(Some(shown.trim())) } else { Err(AuthRefusal::Bad) }
}

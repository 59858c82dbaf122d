//! From a request to somebody who may make it.

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
use super::needs::{self, Asked, Need, Of};
use super::{Access, Admitted, Entrance, Refusal, Unguarded};
use crate::peer::{PeerAddress, PeerCertificate};
use crate::tenant::{self, TENANT};

/// A failed answer takes at least so long: trying many keys one after the other leads nowhere.
const FAILED_AFTER: Duration = Duration::from_millis(200);

/// Clones share it.
#[derive(Clone)]
pub(crate) struct Gate {
    engine: Engine,
    clock: Arc<dyn Clock>,
    access: Access,
    brake: Arc<Brake>,
}

impl Gate {
    pub(crate) fn new(engine: Engine, clock: Arc<dyn Clock>, access: Access) -> Self {
        Self { engine, clock, access, brake: Arc::default() }
    }

    /// For an answer that goes on, what it hangs by.
    pub(crate) async fn admit<B>(&self, request: &mut Request<B>, is_grpc: bool) -> Result<Option<Leash>, Refusal> {
        let path = request.uri().path();
        let asked = if is_grpc { needs::of_grpc(path) } else { needs::of_rest(request.method(), path) };
        let goes_on = needs::goes_on(path) && matches!(self.access, Access::Closed(_));
        self.check(request, asked).await?;
        let shown = if goes_on { shown(request) } else { None };
        Ok(shown.map(|shown| Leash::new(self.clone(), shown)))
    }

    /// Why what somebody has shown counts no more. Only what is known: while nobody can tell, work goes on.
    pub(super) async fn is_over(&self, shown: &Shown) -> Option<Refusal> {
        let Access::Closed(entrance) = &self.access else { return None };
        let identified = match shown {
            Shown::Bearer(text) => self.of_bearer(entrance, text, || Ok(())).await,
            Shown::Certificate(subject) => self.of_certificate(subject).await,
        };
        identified.err().filter(|refusal| matches!(refusal, Refusal::Bad | Refusal::Token(_)))
    }

    /// For numbers about everybody, which have a port of their own.
    pub(crate) async fn admit_scrape<B>(&self, request: &mut Request<B>) -> Result<(), Refusal> {
        let need = Need { permission: Permission::Look, of: Of::Installation };
        let asked = if request.uri().path() == "/metrics" { Asked::Needs(need) } else { Asked::Open };
        self.check(request, asked).await
    }

    async fn check<B>(&self, request: &mut Request<B>, asked: Asked) -> Result<(), Refusal> {
        let Access::Closed(entrance) = &self.access else {
            request.extensions_mut().insert(Unguarded);
            return Ok(());
        };
        let need = match asked {
            Asked::Open => return Ok(()),
            Asked::Needs(need) => need,
            // Those outside are not told what there is.
            Asked::NoSuchMethod | Asked::NoSuchPath => Need { permission: Permission::Enter, of: Of::Tenant },
        };
        let identity = self.identified(entrance, request).await?;
        let admitted = match allowed(&identity, need, request.headers()) {
            Ok(caller) => Admitted { identity, caller },
            Err(refusal) => {
                self.engine.metrics().access.refused(refusal.code());
                self.engine.note_refused(&identity, request.uri().path(), &refusal.text()).await;
                return Err(refusal);
            }
        };
        match asked {
            Asked::NoSuchMethod => Err(Refusal::NoSuchMethod),
            Asked::NoSuchPath => Err(Refusal::NoSuchPath),
            Asked::Open | Asked::Needs(_) => {
                request.extensions_mut().insert(admitted);
                Ok(())
            }
        }
    }

    async fn identified<B>(&self, entrance: &Entrance, request: &Request<B>) -> Result<Identity, Refusal> {
        let peer = request.extensions().get::<PeerAddress>();
        let (from, network) = (peer.map(PeerAddress::ip), peer.and_then(PeerAddress::network));
        let certificate = request.extensions().get::<PeerCertificate>();
        let shown = match bearer(request.headers()) {
            Ok(Some(text)) => self.of_bearer(entrance, text, || self.may_look(network)).await,
            Ok(None) => match certificate {
                Some(certificate) => self.of_certificate(&certificate.subject).await,
                None => Err(Refusal::Missing),
            },
            Err(refusal) => Err(refusal),
        };
        match shown {
            Ok(identity) => Ok(Identity { source: from, ..identity }),
            Err(refusal) => Err(self.failed(refusal, from).await),
        }
    }

    /// What somebody is told who is not let in, and when. A good credential that is known here is never made to wait: others
    /// may share its address.
    async fn failed(&self, refusal: Refusal, from: Option<IpAddr>) -> Refusal {
        // Whoever shows nothing guesses nothing, and an outage is not their fault.
        let guessed = matches!(refusal, Refusal::Bad | Refusal::Token(_));
        let refusal = match from.filter(|_| guessed).and_then(|from| self.brake.failed(from)) {
            Some(wait) => Refusal::Slow(wait),
            None => refusal,
        };
        self.engine.metrics().access.refused(refusal.code());
        tracing::info!(code = refusal.code(), why = refusal.text(), ?from, "somebody was not let in");
        if guessed && !matches!(refusal, Refusal::Slow(_)) {
            tokio::time::sleep(FAILED_AFTER).await;
        }
        refusal
    }

    /// Whether an id that nobody here has seen is looked up for somebody: not for those who guess. Behind a proxy on this
    /// machine they could not be told from the others.
    fn may_look(&self, network: Option<IpAddr>) -> Result<(), Refusal> {
        match network.and_then(|network| self.brake.holds_back(network)) {
            Some(wait) => Err(Refusal::Slow(wait)),
            None => Ok(()),
        }
    }

    async fn of_bearer(
        &self,
        entrance: &Entrance,
        text: &str,
        may_look: impl FnOnce() -> Result<(), Refusal>,
    ) -> Result<Identity, Refusal> {
        if !ApiKey::is_meant(text) {
            let Some(tokens) = &entrance.tokens else { return Err(Refusal::Bad) };
            return tokens.verify(text, self.clock.now()).await.map_err(|error| match error {
                TokenError::Unavailable(text) => Refusal::Unavailable(text),
                error => Refusal::Token(error),
            });
        }
        let key = ApiKey::parse(text).map_err(|_| Refusal::Bad)?;
        if let Some(inside) = entrance.inside.as_ref().filter(|inside| opens(entrance, inside, &key)) {
            return Ok(inside.identity());
        }
        self.engine.identify_key_if(&entrance.digest, &key, may_look).await?.ok_or(Refusal::Bad)
    }

    async fn of_certificate(&self, subject: &str) -> Result<Identity, Refusal> {
        self.engine.identify_certificate(subject).await.map_err(|error| away(&error))?.ok_or(Refusal::Bad)
    }
}

/// Who acts: on behalf of one tenant, if the identity reaches it and may do what it asks.
fn allowed(identity: &Identity, need: Need, headers: &HeaderMap) -> Result<Caller, Refusal> {
    if !identity.grant.allows(need.permission) {
        return Err(Refusal::lacking(&identity.grant, need.permission));
    }
    if need.of == Of::Installation && identity.grant.reach != Reach::Everyone {
        return Err(Refusal::too_far());
    }
    let asked = tenant::named(headers, &TENANT).map_err(|error| Refusal::Forbidden(error.to_string()))?;
    let caller = identity.caller(asked.map(TenantId::from).as_ref());
    caller.ok_or_else(|| Refusal::Forbidden("the credential is for another tenant".into()))
}

fn opens(entrance: &Entrance, credential: &Credential, key: &ApiKey) -> bool {
    credential.id == key.id && entrance.digest.matches(key, &credential.kind)
}

/// Strangers are not told how the Store is.
fn away(error: &ApiError) -> Refusal {
    tracing::warn!(%error, "a credential could not be looked up");
    Refusal::Unavailable("credentials cannot be checked for a moment; try again".into())
}

impl From<StoreError> for Refusal {
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

/// What a request shows; at most one thing, so that nobody can mean two.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().ok().filter(|_| values.next().is_none()).ok_or(Refusal::Bad)?;
    let (scheme, shown) = text.split_once(' ').ok_or(Refusal::Bad)?;
    if scheme.eq_ignore_ascii_case("bearer") { Ok(Some(shown.trim())) } else { Err(Refusal::Bad) }
}

//! Who calls: the authenticated caller, or, without authentication, the one that the request names.

use http::{Extensions, HeaderMap, HeaderName};
use lockgate_core::ids::{ActorId, check_name};
use lockgate_core::request::{Caller, FieldError};
use lockgate_core::trace::TraceParent;
use lockgate_engine::ApiError;

use crate::auth::{Authenticated, Unguarded};
use crate::peer::PeerAddress;

pub(crate) const TENANT: HeaderName = HeaderName::from_static("x-lockgate-tenant");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const ACTOR: HeaderName = HeaderName::from_static("x-lockgate-actor");
const ACTOR_TYPE: HeaderName = HeaderName::from_static("x-lockgate-actor-type");

/// REST headers and gRPC metadata are the same thing. A request that did not pass the gate does not count, however it came.
pub(crate) fn caller(headers: &HeaderMap, extensions: &Extensions) -> Result<Caller, ApiError> {
    let caller = match (extensions.get::<Authenticated>(), extensions.get::<Unguarded>()) {
        (Some(admitted), _) => admitted.caller.clone(),
        (None, Some(Unguarded)) => unverified(headers)?,
        (None, None) => return Err(ApiError::Internal("a request came past the gate".into())),
    };
    let source = extensions.get::<PeerAddress>().map(PeerAddress::ip);
    Ok(Caller { trace: trace(headers), source, ..caller })
}

/// What the caller is doing. As the standard wants it, a context that cannot be read is no context: whoever put it there, a
/// proxy perhaps, must not make the call fail.
fn trace(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACEPARENT).iter();
    let only = values.next().filter(|_| values.next().is_none())?;
    only.to_str().ok()?.parse().ok()
}

fn unverified(headers: &HeaderMap) -> Result<Caller, ApiError> {
    let names = (named(headers, &TENANT), named(headers, &ACTOR), named(headers, &ACTOR_TYPE));
    let (Ok(tenant), Ok(actor), Ok(actor_type)) = names else {
        return Err(ApiError::Invalid([names.0.err(), names.1.err(), names.2.err()].into_iter().flatten().collect()));
    };
    let actor = ActorId::from(actor.unwrap_or("anonymous"));
    let caller = Caller::of_kind(tenant.unwrap_or("default"), actor, actor_type.map(Into::into));
    Ok(Caller { tenant_named: tenant.is_some(), ..caller })
}

pub(crate) fn named<'a>(headers: &'a HeaderMap, header: &HeaderName) -> Result<Option<&'a str>, FieldError> {
    let mut values = headers.get_all(header).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(FieldError::new(header.as_str(), "must be given once"));
    }
    let text = value.to_str().map_err(|_| FieldError::new(header.as_str(), "must be plain ASCII text"))?;
    check_name(text).map_err(|error| FieldError::new(header.as_str(), error))?;
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn without_headers_the_caller_is_anonymous_in_the_default_tenant() {
        let caller = unverified(&HeaderMap::new()).expect("defaults");
        assert_eq!((caller.tenant.as_str(), caller.actor.as_str()), ("default", "anonymous"));
    }

    #[test]
    fn a_trace_context_that_cannot_be_read_is_none() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let mut headers = HeaderMap::new();
        assert_eq!(trace(&headers), None);
        headers.insert(TRACEPARENT, HeaderValue::from_static(good));
        assert_eq!(trace(&headers).map(|trace| trace.to_string()).as_deref(), Some(good));
        headers.append(TRACEPARENT, HeaderValue::from_static(good));
        assert_eq!(trace(&headers), None);
        headers.insert(TRACEPARENT, HeaderValue::from_static("00-what"));
        assert_eq!(trace(&headers), None);
    }

    #[test]
    fn every_bad_header_is_named() {
        let mut headers = HeaderMap::new();
        headers.insert(TENANT, HeaderValue::from_static("a b"));
        headers.append(ACTOR, HeaderValue::from_static("one"));
        headers.append(ACTOR, HeaderValue::from_static("two"));
        let Err(ApiError::Invalid(errors)) = unverified(&headers) else { panic!("must be refused") };
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["x-lockgate-tenant", "x-lockgate-actor"]);
    }
}

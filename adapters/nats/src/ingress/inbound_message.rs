//! A message as received, before its body is decoded.

use std::fmt::Write;

use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use lockgate_core::ids::{ActorId, TenantId, check_name};
use lockgate_core::request::Caller;
use sha2::{Digest, Sha256};

const TENANT: &str = "x-lockgate-tenant";
const ACTOR: &str = "x-lockgate-actor";
const ACTOR_TYPE: &str = "x-lockgate-actor-type";

/// A received message. A repeat of it has the same id.
#[derive(Clone, Debug)]
pub(crate) struct InboundMessage {
    /// The sender's id, else a hash of the content.
    pub(crate) id: String,
    /// Whether the sender gave the id.
    pub(crate) is_named: bool,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Bytes,
}

impl InboundMessage {
    /// `subject` is the base subject, without an appended address.
    pub(crate) fn new(subject: &str, message: &async_nats::Message) -> Self {
        let headers = message.headers.clone().unwrap_or_default();
        let payload = message.payload.clone();
        // Equal content from another sender is another message.
        let said = |name| headers.get(name).map(|value| value.as_str());
        let sender = match (said(TENANT), said(ACTOR)) {
            (None, None) => String::new(),
            (tenant, actor) => format!("{}:", &digest(format!("{tenant:?}{actor:?}").as_bytes())[..16]),
        };
        let named = headers.get(NATS_MESSAGE_ID).map(|id| format!("{subject}:{sender}{}", id.as_str()));
        let is_named = named.is_some();
        let id = named.unwrap_or_else(|| format!("{subject}:{sender}sha256:{}", digest(&payload)));
        Self { id, is_named, headers, payload }
    }

    /// The sender; unverified, like these headers in a call. Without headers it is anonymous in the default tenant.
    pub(crate) fn caller(&self) -> Result<Caller, String> {
        let actor_type = self.name(ACTOR_TYPE)?;
        let tenant = self.tenant()?;
        let tenant_named = tenant.is_some();
        let actor = ActorId::from(self.name(ACTOR)?.unwrap_or("anonymous"));
        let caller = Caller::of_kind(tenant.unwrap_or_else(|| "default".into()), actor, actor_type.map(Into::into));
        Ok(Caller { tenant_named, ..caller })
    }

    /// The tenant that the sender asks for.
    pub(crate) fn tenant(&self) -> Result<Option<TenantId>, String> {
        Ok(self.name(TENANT)?.map(TenantId::from))
    }

    /// An idempotency key for the n-th part of the message, equal in every repeat.
    pub(crate) fn key(&self, n: usize) -> String {
        format!("nats:{}:{n}", digest(self.id.as_bytes()))
    }

    fn name(&self, header: &str) -> Result<Option<&str>, String> {
        let mut values = self.headers.get_all(header);
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(format!("the header {header} must be given once"));
        }
        check_name(value.as_str()).map_err(|error| format!("the header {header} {error}"))?;
        Ok(Some(value.as_str()))
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
pub(crate) fn inbound(headers: &[(&str, &str)], payload: impl Into<Bytes>) -> InboundMessage {
    let mut map = HeaderMap::new();
    headers.iter().for_each(|(name, value)| map.append(*name, *value));
    let payload = payload.into();
    let message = async_nats::Message {
        subject: "sys.job.submit".into(),
        reply: None,
        length: payload.len(),
        payload,
        headers: Some(map),
        status: None,
        description: None,
    };
    InboundMessage::new("sys.job.submit", &message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_known_by_its_id_else_by_its_content() {
        let named = inbound(&[("Nats-Msg-Id", "m-1")], "one");
        assert!(named.is_named && named.id.starts_with("sys.job.submit:") && named.id.ends_with(":m-1"), "{}", named.id);
        assert_ne!(named.id, inbound(&[("Nats-Msg-Id", "m-1"), (TENANT, "acme")], "one").id, "of somebody else");
        assert_ne!(inbound(&[], "one").id, inbound(&[(ACTOR, "ann")], "one").id, "of somebody else");
        assert_eq!(named.id, inbound(&[("Nats-Msg-Id", "m-1")], "two").id);
        assert_eq!(inbound(&[], "one").id, inbound(&[("x", "y")], "one").id);
        assert_ne!(inbound(&[], "one").id, inbound(&[], "two").id);
        assert!(check_name(&named.key(9_999)).is_ok());
    }

    #[test]
    fn the_caller_is_read_from_headers() {
        let caller = inbound(&[], "").caller().expect("defaults");
        assert_eq!((caller.tenant.as_str(), caller.actor.as_str()), ("default", "anonymous"));
        let caller = inbound(&[(TENANT, "acme"), (ACTOR, "ann"), (ACTOR_TYPE, "agent")], "").caller().expect("valid");
        assert_eq!((caller.tenant.as_str(), caller.actor_type.as_deref()), ("acme", Some("agent")));
        assert!(inbound(&[(TENANT, "a b")], "").caller().expect_err("refused").contains(TENANT));
        assert!(inbound(&[(ACTOR, "a"), (ACTOR, "b")], "").caller().is_err());
    }
}

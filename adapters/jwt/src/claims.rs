//! The claims of a token whose signature was verified.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::access::{CredentialId, Grant, Identity, Reach, Role};
use lockgate_core::ids::{ActorId, PoolName, TenantId, check_name};
use lockgate_core::time::Timestamp;
use lockgate_ports::TokenError;
use serde_json::{Map, Value};

/// Stands for every tenant.
const EVERYONE: &str = "*";

pub(crate) struct Claims(Map<String, Value>);

impl Claims {
    pub(crate) fn parse(payload: &[u8]) -> Result<Self, TokenError> {
        serde_json::from_slice(payload).map(Self).map_err(|_| TokenError::Malformed("its claims are no JSON object"))
    }

    /// Checks that the trusted issuer made the token for this audience.
    pub(crate) fn check_purpose(&self, issuer: &str, audience: &str) -> Result<(), TokenError> {
        if self.get("iss").and_then(Value::as_str) != Some(issuer) {
            return Err(TokenError::NotForUs("issuer"));
        }
        let is_us = |value: &Value| value.as_str() == Some(audience);
        let meant = match self.get("aud") {
            Some(Value::Array(list)) => list.iter().any(is_us),
            Some(value) => is_us(value),
            None => false,
        };
        if meant { Ok(()) } else { Err(TokenError::NotForUs("audience")) }
    }

    pub(crate) fn check_times(&self, now: Timestamp, leeway: Duration) -> Result<(), TokenError> {
        let Some(ends) = self.time("exp", "its exp claim is no number of seconds")? else {
            return Err(TokenError::Malformed("it has no exp claim, so it would be good for ever"));
        };
        let starts = self.time("nbf", "its nbf claim is no number of seconds")?;
        let issued = self.time("iat", "its iat claim is no number of seconds")?;
        let over = now >= ends + leeway;
        let early = [starts, issued].into_iter().flatten().any(|from| from > now + leeway);
        if over || early { Err(TokenError::Expired) } else { Ok(()) }
    }

    pub(crate) fn identity(&self, via: CredentialId) -> Result<Identity, TokenError> {
        let actor = ActorId::from(self.name("sub")?.ok_or_else(|| nameless("its sub claim is missing"))?);
        let actor_type = self.name("actor_type")?.map(Into::into);
        let roles = self.roles()?;
        let payloads = match self.get("payloads") {
            None => false,
            Some(Value::Bool(said)) => *said,
            Some(_) => return Err(nameless("its payloads claim must be true or false")),
        };
        let grant = Grant { reach: self.reach()?, roles, pools: self.pools()?, payloads };
        if let Some((claim, text)) = grant.fault() {
            return Err(nameless(format!("its {claim} claim: {text}")));
        }
        Ok(Identity { actor, actor_type, grant, via, source: None })
    }

    fn reach(&self) -> Result<Reach, TokenError> {
        if self.get("tenant").and_then(Value::as_str) == Some(EVERYONE) {
            return Ok(Reach::Everyone);
        }
        let tenant = self.name("tenant")?.ok_or_else(|| nameless("its tenant claim is missing"))?;
        Ok(Reach::Tenant(TenantId::from(tenant)))
    }

    fn roles(&self) -> Result<BTreeSet<Role>, TokenError> {
        let wrong = || nameless("its roles claim must be a list of texts, or words with spaces between them");
        let words: Vec<&str> = match self.get("roles") {
            Some(Value::String(text)) => text.split_whitespace().collect(),
            Some(Value::Array(list)) => list.iter().map(Value::as_str).collect::<Option<_>>().ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
            None => Vec::new(),
        };
        if words.is_empty() {
            return Err(nameless("its roles claim is missing or empty"));
        }
        words.into_iter().map(|word| word.parse().map_err(|error| unknown_role(word, error))).collect()
    }

    /// An empty list must be refused: it may have lost its entries on the way, and no list at all means every pool.
    fn pools(&self) -> Result<BTreeSet<PoolName>, TokenError> {
        let list = match self.get("pools") {
            None => return Ok(BTreeSet::new()),
            Some(Value::Array(list)) if !list.is_empty() => list,
            Some(_) => return Err(nameless("its pools claim must be a list with pools in it, or left out for every pool")),
        };
        let pool = |value: &Value| {
            let text = value.as_str().ok_or_else(|| nameless("its pools claim must be a list of texts"))?;
            checked("pools", text).map(PoolName::from)
        };
        list.iter().map(pool).collect()
    }

    fn name(&self, claim: &str) -> Result<Option<&str>, TokenError> {
        match self.get(claim) {
            None => Ok(None),
            Some(Value::String(text)) => checked(claim, text).map(Some),
            Some(_) => Err(nameless(format_args!("its {claim} claim must be text"))),
        }
    }

    /// Seconds since 1970, fractions allowed. Times beyond the clock's range are clamped.
    fn time(&self, claim: &str, wrong: &'static str) -> Result<Option<Timestamp>, TokenError> {
        let Some(value) = self.get(claim) else { return Ok(None) };
        let seconds = value.as_f64().ok_or(TokenError::Malformed(wrong))?;
        #[expect(clippy::cast_possible_truncation, reason = "saturates, which is what is meant")]
        let millis = (seconds * 1_000.0) as i64;
        Ok(Some(Timestamp::from_millis(millis)))
    }

    /// Null counts as absent.
    fn get(&self, claim: &str) -> Option<&Value> {
        self.0.get(claim).filter(|value| !value.is_null())
    }
}

fn nameless(what: impl std::fmt::Display) -> TokenError {
    TokenError::Nameless(what.to_string())
}

fn checked<'a>(claim: &str, text: &'a str) -> Result<&'a str, TokenError> {
    check_name(text).map_err(|error| nameless(format_args!("its {claim} claim {error}")))?;
    Ok(text)
}

/// Names the role if it is safe to write into a log line.
fn unknown_role(word: &str, error: impl std::fmt::Display) -> TokenError {
    match check_name(word) {
        Ok(()) => nameless(format_args!("role {word} of its roles claim {error}")),
        Err(_) => nameless(format_args!("a role of its roles claim {error}")),
    }
}

//! Credentials that clients ask for, by either door.

use std::time::Duration;

use lockgate_api::body::KeyBody;
use lockgate_core::access::{Grant, Reach, Role};
use lockgate_core::ids::PoolName;
use lockgate_core::request::FieldError;
use lockgate_engine::{ApiError, NewCredential};

use crate::ServiceContext;
use crate::auth::{AccessMode, Entrance};

/// What a client asks for, checked as far as it can be here.
pub(crate) fn read(body: KeyBody) -> Result<NewCredential, ApiError> {
    let mut errors = Vec::new();
    let roles = body.roles.iter().filter_map(|role| {
        role.parse::<Role>().map_err(|error| errors.push(FieldError::new("roles", format_args!("{role:?} {error}")))).ok()
    });
    let roles = roles.collect();
    if body.lasts_ms.is_some_and(|span| span == 0 || i64::try_from(span).is_err()) {
        errors.push(FieldError::new("lasts_ms", format_args!("must be between 1 and {}", i64::MAX)));
    }
    if !errors.is_empty() {
        return Err(ApiError::Invalid(errors));
    }
    let grant = Grant {
        reach: body.tenant.map_or(Reach::Everyone, |tenant| Reach::Tenant(tenant.into())),
        roles,
        pools: body.pools.into_iter().map(PoolName::from).collect(),
        payloads: body.payloads,
    };
    let lasts = body.lasts_ms.map(Duration::from_millis);
    Ok(NewCredential { actor: body.actor, actor_type: body.actor_type, grant, lasts })
}

/// What credentials are checked against, if clients are authenticated.
pub(crate) fn entrance(shared: &ServiceContext) -> Result<&Entrance, ApiError> {
    match &shared.settings.access {
        AccessMode::Closed(entrance) => Ok(&**entrance),
        AccessMode::Open => {
            let text = "this server asks nobody for a credential, so there are none to manage; start it with --auth";
            Err(ApiError::NotConfigured(text.to_owned()))
        }
    }
}

//! Submits that come by letter, over a message bus, and not by a call.
//!
//! A letter is stored on its way, where others may read it, so it carries no credential. Where credentials are asked for, one
//! key stands for all who may write: whom the bus lets write is the bus's to say, and what the key may do is said here.

use std::sync::Arc;

use lockgate_core::access::{ApiKey, Permission};
use lockgate_core::ids::TenantId;
use lockgate_core::request::Caller;
use lockgate_engine::{ApiError, Engine};
use lockgate_proto::v1;

use crate::auth::{AccessMode, Entrance};
use crate::{Gateway, grpc};

/// Takes letters.
#[derive(Clone)]
pub struct BusSubmits {
    engine: Engine,
    ack: &'static str,
    senders: Senders,
}

#[derive(Clone)]
enum Senders {
    /// The sender named in the message.
    Unverified,
    /// The bearer of the key.
    Known { entrance: Arc<Entrance>, key: ApiKey },
}

impl Gateway {
    /// None where credentials are asked for and there is no key.
    pub fn bus_submits(&self, key: Option<ApiKey>) -> Option<BusSubmits> {
        let senders = match (&self.settings.access, key) {
            (AccessMode::Open, _) => Senders::Unverified,
            (AccessMode::Closed(entrance), Some(key)) => Senders::Known { entrance: entrance.clone(), key },
            (AccessMode::Closed(_), None) => return None,
        };
        Some(BusSubmits { engine: self.engine.clone(), ack: self.settings.ack, senders })
    }
}

impl BusSubmits {
    /// Like the call SubmitJobs with these jobs. `said` is who the sender claims to be, `tenant` the one that they named.
    pub async fn submit(
        &self,
        said: &Caller,
        tenant: Option<&TenantId>,
        jobs: Vec<v1::NewJob>,
    ) -> Result<v1::SubmitJobsResponse, ApiError> {
        let caller = self.caller(said, tenant).await?;
        grpc::submit_many(&self.engine, self.ack, &caller, jobs).await
    }

    /// A key that does not count is the operator's to mend, not the sender's: letters wait for it.
    async fn caller(&self, said: &Caller, tenant: Option<&TenantId>) -> Result<Caller, ApiError> {
        let Senders::Known { entrance, key } = &self.senders else { return Ok(said.clone()) };
        let identity = self.engine.identify_key(&entrance.digest, key).await?;
        let may = identity.filter(|identity| identity.grant.allows(Permission::Submit));
        let identity = may.ok_or_else(|| {
            ApiError::Unavailable("the key that stands for letters is not one that may submit, or has ended".to_owned())
        })?;
        let other = || ApiError::Forbidden("the key that stands for letters is for another tenant".to_owned());
        identity.caller(tenant).ok_or_else(other)
    }
}

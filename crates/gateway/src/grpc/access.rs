//! The `Access` service: credentials.

use std::time::Duration;

use lockgate_api::body::KeyBody;
use lockgate_api::credential_to_wire;
use lockgate_core::access::{CredentialId, Identity};
use lockgate_engine::{ApiError, MadeKey, NewCredential};
use lockgate_proto::v1;
use lockgate_proto::v1::access_server::Access;
use tonic::{Request, Status};

use super::lists::{page, present};
use super::{AccessService, GrpcResult, answer, caller};
use crate::access::{entrance, read};
use crate::auth::Authenticated;
use crate::{errors, wire};

#[tonic::async_trait]
impl Access for AccessService {
    async fn who_am_i(&self, request: Request<v1::WhoAmIRequest>) -> GrpcResult<v1::WhoAmIResponse> {
        let caller = caller(&request)?;
        let admitted = request.extensions().get::<Authenticated>();
        answer(Ok(wire::who_am_i(&caller, admitted.map(|admitted| &admitted.identity))))
    }

    async fn create_key(&self, request: Request<v1::CreateKeyRequest>) -> GrpcResult<v1::CreateKeyResponse> {
        let by = self.admitted(&request)?;
        answer(self.create(&by, request.into_inner()).await)
    }

    async fn rotate_key(&self, request: Request<v1::RotateKeyRequest>) -> GrpcResult<v1::CreateKeyResponse> {
        let by = self.admitted(&request)?;
        let v1::RotateKeyRequest { id, overlap_ms } = request.into_inner();
        let (id, overlap) = (CredentialId::from(&*id), Duration::from_millis(overlap_ms));
        let digest = &entrance(&self.0).map_err(|error| errors::status(&error))?.digest;
        let made = self.0.engine.rotate_key(&by, digest, &id, overlap).await;
        answer(made.map(|made| self.made(&made)))
    }

    async fn bind_certificate(&self, request: Request<v1::BindCertificateRequest>) -> GrpcResult<v1::Credential> {
        let by = self.admitted(&request)?;
        let v1::BindCertificateRequest { subject, credential } = request.into_inner();
        let new = wanted(credential).map_err(|error| errors::status(&error))?;
        let bound = self.0.engine.bind_certificate(&by, &subject, new).await;
        answer(bound.map(|credential| credential_to_wire(&credential, self.0.clock.now())))
    }

    async fn list_credentials(
        &self,
        request: Request<v1::ListCredentialsRequest>,
    ) -> GrpcResult<v1::ListCredentialsResponse> {
        let by = self.admitted(&request)?;
        answer(self.list(&by, request.into_inner()).await)
    }

    async fn revoke_credential(&self, request: Request<v1::RevokeCredentialRequest>) -> GrpcResult<v1::Credential> {
        let by = self.admitted(&request)?;
        let id = CredentialId::from(&*request.into_inner().id);
        let ended = self.0.engine.revoke_credential(&by, &id).await;
        answer(ended.map(|credential| credential_to_wire(&credential, self.0.clock.now())))
    }
}

impl AccessService {
    /// Who manages. Without authentication there is nothing to manage.
    fn admitted<T>(&self, request: &Request<T>) -> Result<Identity, Status> {
        entrance(&self.0).map_err(|error| errors::status(&error))?;
        let admitted = request.extensions().get::<Authenticated>();
        let nobody = || Status::internal("a request came past the gate");
        admitted.map(|admitted| admitted.identity.clone()).ok_or_else(nobody)
    }

    async fn create(&self, by: &Identity, wire: v1::CreateKeyRequest) -> Result<v1::CreateKeyResponse, ApiError> {
        let new = wanted(wire.credential)?;
        let made = self.0.engine.create_key(by, &entrance(&self.0)?.digest, new).await?;
        Ok(self.made(&made))
    }

    async fn list(&self, by: &Identity, wire: v1::ListCredentialsRequest) -> Result<v1::ListCredentialsResponse, ApiError> {
        let after = present(wire.after).map(|after| CredentialId::from(&*after));
        let (rows, next) = self.0.engine.credentials(by, after.as_ref(), page(wire.limit)).await?;
        Ok(wire::credentials(&rows, next.as_ref(), self.0.clock.now()))
    }

    fn made(&self, made: &MadeKey) -> v1::CreateKeyResponse {
        wire::made_key(made, self.0.clock.now())
    }
}

fn wanted(wire: Option<v1::NewCredential>) -> Result<NewCredential, ApiError> {
    let wire = wire.ok_or_else(|| ApiError::invalid("credential", "must be set"))?;
    if wire.grant.is_none() {
        return Err(ApiError::invalid("credential.grant", "must be set"));
    }
    read(KeyBody::from(wire))
}

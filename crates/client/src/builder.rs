//! The connection to a server, on behalf of a tenant and an actor.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use lockgate_proto::v1::approvals_client::ApprovalsClient;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use lockgate_tls::grpc::{Access, Bearer, Credential, TlsFiles};
use tokio::runtime::Handle;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::error::ClientError;

/// Longer than a healthy server takes for any call: it gives up on its store after 2 s.
const CALL_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30);
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A page of jobs with large payloads is far above gRPC's default of 4 MiB.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Notices a server that is gone while a stream is open.
const PING_EVERY: Duration = Duration::from_secs(10);

pub(crate) type ClientChannel = InterceptedService<Channel, CallIdentity>;

/// Who calls, sent with every request.
#[derive(Clone, Debug)]
pub(crate) struct CallIdentity {
    headers: Vec<(&'static str, MetadataValue<Ascii>)>,
    bearer: Bearer,
}

impl Interceptor for CallIdentity {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.clone());
        }
        self.bearer.call(request)
    }
}

/// A connection to one server. Cheap to clone; clones share the connection.
#[derive(Clone, Debug)]
pub struct Client {
    pub(crate) server: Arc<str>,
    pub(crate) call_timeout: Duration,
    channel: ClientChannel,
}

/// What a [`Client`] is made with.
#[derive(Clone, Debug)]
#[must_use = "a client is made by `open`"]
pub struct ClientBuilder {
    url: String,
    access: Access,
    tenant: Option<String>,
    actor: Option<String>,
    actor_type: Option<String>,
    call_timeout: Duration,
}

impl Client {
    /// Will call the server at `url`, like `https://gate.example:8080` or `http://127.0.0.1:8080`.
    pub fn connect(url: impl Into<String>) -> ClientBuilder {
        ClientBuilder {
            url: url.into(),
            access: Access::default(),
            tenant: None,
            actor: None,
            actor_type: None,
            call_timeout: CALL_TIMEOUT_DEFAULT,
        }
    }

    pub(crate) fn scheduler(&self) -> SchedulerClient<ClientChannel> {
        SchedulerClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn approvals(&self) -> ApprovalsClient<ClientChannel> {
        ApprovalsClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn orchestrator(&self) -> OrchestratorClient<ClientChannel> {
        OrchestratorClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// One answer within the call timeout. For a stream, its beginning.
    pub(crate) async fn answer<T>(&self, call: impl Future<Output = Result<Response<T>, Status>>) -> Result<T, ClientError> {
        self.answer_within(self.call_timeout, call).await
    }

    pub(crate) async fn answer_within<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        let Ok(answer) = tokio::time::timeout(within, call).await else {
            return Err(ClientError::TimedOut { server: self.server.to_string(), within });
        };
        answer.map(Response::into_inner).map_err(|status| self.error(&status))
    }

    pub(crate) fn error(&self, status: &Status) -> ClientError {
        ClientError::from_status(status, &self.server)
    }
}

impl ClientBuilder {
    /// An API key or a token. It is not sent in the clear, except to this machine.
    pub fn credential(mut self, credential: impl Into<Credential>) -> Self {
        self.access.credential = Some(credential.into());
        self
    }

    /// For a server at an `https` address: authorities to believe beside the public ones, and a certificate to show.
    pub fn tls(mut self, tls: TlsFiles) -> Self {
        self.access.tls = tls;
        self
    }

    /// The credential may travel in the clear to another machine, as in a mesh that encrypts.
    pub fn insecure_plaintext(mut self) -> Self {
        self.access.plaintext = true;
        self
    }

    /// The tenant whose jobs these are; the credential's own unless said, else `default`.
    pub fn tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Who calls. A server that requires credentials knows it from the credential, and refuses another name.
    pub fn actor(mut self, actor: impl Into<String>) -> Self {
        self.actor = Some(actor.into());
        self
    }

    /// What kind of actor calls, such as `person`, `service` or `agent`; policies may ask for it.
    pub fn actor_type(mut self, kind: impl Into<String>) -> Self {
        self.actor_type = Some(kind.into());
        self
    }

    /// How long one call may take; 30 s unless said.
    pub fn call_timeout(mut self, timeout: Duration) -> Self {
        self.call_timeout = timeout;
        self
    }

    /// Checks the settings. The connection is made by the first call, and made again when it is lost.
    ///
    /// Must be called inside a Tokio runtime.
    pub fn open(self) -> Result<Client, ClientError> {
        if Handle::try_current().is_err() {
            return Err(ClientError::Setup(
                "a client is opened inside a Tokio runtime; call `open` from an async function".into(),
            ));
        }
        let setup = |error: lockgate_tls::grpc::AccessError| ClientError::Setup(error.to_string());
        let named = [
            ("x-lockgate-tenant", &self.tenant),
            ("x-lockgate-actor", &self.actor),
            ("x-lockgate-actor-type", &self.actor_type),
        ];
        let mut headers = Vec::new();
        for (name, text) in named.into_iter().filter_map(|(name, text)| Some((name, text.as_deref()?))) {
            let what = name.trim_start_matches("x-lockgate-");
            let value = Some(text).filter(|text| text.is_ascii()).and_then(|text| text.parse().ok());
            let wrong = || ClientError::Setup(format!("{what} {text:?} must be plain ASCII text"));
            headers.push((name, value.ok_or_else(wrong)?));
        }
        let bearer = self.access.bearer().map_err(setup)?;
        let endpoint = self.access.endpoint(&self.url).map_err(setup)?;
        let endpoint = endpoint.connect_timeout(CONNECT_WITHIN.min(self.call_timeout)).tcp_nodelay(true);
        let endpoint = endpoint.http2_keep_alive_interval(PING_EVERY).keep_alive_timeout(PING_EVERY);
        let channel = InterceptedService::new(endpoint.connect_lazy(), CallIdentity { headers, bearer });
        Ok(Client { server: self.url.into(), call_timeout: self.call_timeout, channel })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(builder: ClientBuilder) -> String {
        builder.open().map(|_| ()).unwrap_err().to_string()
    }

    #[tokio::test]
    async fn what_cannot_work_is_refused_before_the_first_call() {
        assert!(refusal(Client::connect("nonsense")).contains("http://host:port"));
        assert!(refusal(Client::connect("http://far.example").credential("lgk_x")).contains("in the clear"));
        assert!(refusal(Client::connect("http://127.0.0.1:1").tenant("ä")).contains("tenant \"ä\" must be plain ASCII"));
        assert!(refusal(Client::connect("http://127.0.0.1:1").credential("two words")).contains("ASCII"));
    }

    #[test]
    fn a_client_outside_of_a_runtime_is_refused_in_words() {
        assert!(refusal(Client::connect("http://127.0.0.1:1")).contains("inside a Tokio runtime"));
    }

    #[tokio::test]
    async fn a_credential_is_not_printed() {
        let client = Client::connect("http://127.0.0.1:1").credential("lgk_secret").open().unwrap();
        assert!(!format!("{client:?}").contains("lgk_secret"));
    }
}

//! The connection to a server, on behalf of a tenant and an actor.

use std::time::Duration;

use lockgate_proto::v1::access_client::AccessClient;
use lockgate_proto::v1::admin_client::AdminClient;
use lockgate_proto::v1::approvals_client::ApprovalsClient;
use lockgate_proto::v1::monitor_client::MonitorClient;
use lockgate_proto::v1::orchestrator_client::OrchestratorClient;
use lockgate_proto::v1::pools_client::PoolsClient;
use lockgate_proto::v1::safety_kernel_client::SafetyKernelClient;
use lockgate_proto::v1::scheduler_client::SchedulerClient;
use lockgate_proto::v1::schedules_client::SchedulesClient;
use lockgate_worker::{AccessError, Bearer};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::{Code, Request, Response, Status};

use crate::cli::Connection;
use crate::deadline::{self, DeadlineChannel};
use crate::error::{CliError, innermost};
use crate::output::Output;

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// A page of jobs with large payloads exceeds the default of 4 MiB by far.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A channel that adds a deadline and the caller's headers to every request.
type ClientChannel = InterceptedService<DeadlineChannel, CallerHeaders>;

pub(crate) type Client = SchedulerClient<ClientChannel>;

/// The caller's headers, sent with every request.
#[derive(Clone, Debug)]
pub(crate) struct CallerHeaders {
    tenant: Option<MetadataValue<Ascii>>,
    actor: Option<MetadataValue<Ascii>>,
    actor_type: Option<MetadataValue<Ascii>>,
    bearer: Bearer,
}

impl Interceptor for CallerHeaders {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let names = ["x-lockgate-tenant", "x-lockgate-actor", "x-lockgate-actor-type"];
        for (name, value) in names.into_iter().zip([&self.tenant, &self.actor, &self.actor_type]) {
            if let Some(value) = value {
                request.metadata_mut().insert(name, value.clone());
            }
        }
        self.bearer.call(request)
    }
}

/// The connection and the output of a command.
pub(crate) struct CliSession {
    pub(crate) client: Client,
    pub(crate) out: Output,
    pub(crate) server: String,
    line: ClientChannel,
}

impl CliSession {
    pub(crate) async fn connect(connection: &Connection, out: Output) -> Result<Self, CliError> {
        let access = connection.access()?;
        let wrong = |error: AccessError| CliError::Usage(error.to_string());
        let identity = CallerHeaders {
            tenant: header("tenant", connection.tenant.as_deref())?,
            actor: header("actor", connection.actor.as_deref())?,
            actor_type: header("actor-type", connection.actor_type.as_deref())?,
            bearer: access.bearer().map_err(wrong)?,
        };
        let within = connection.call_timeout;
        let endpoint = access.endpoint(&connection.server).map_err(wrong)?;
        let endpoint = endpoint.connect_timeout(CONNECT_WITHIN.min(within)).tcp_nodelay(true);
        let unreachable = |cause: String| CliError::Unreachable { server: connection.server.clone(), cause };
        let endpoint = deadline::watched(endpoint, within);
        // The endpoint's own limit covers only the TCP connection, and a TLS handshake may then hang.
        let channel = tokio::time::timeout(CONNECT_WITHIN.min(within), endpoint.connect())
            .await
            .map_err(|_| unreachable("the server did not answer the handshake in time".to_owned()))?
            .map_err(|error| unreachable(innermost(&error)))?;
        let line = InterceptedService::new(DeadlineChannel::new(channel, within), identity);
        let client = SchedulerClient::new(line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX);
        Ok(Self { client, out, server: connection.server.clone(), line })
    }

    pub(crate) fn access(&self) -> AccessClient<ClientChannel> {
        AccessClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn approvals(&self) -> ApprovalsClient<ClientChannel> {
        ApprovalsClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn admin(&self) -> AdminClient<ClientChannel> {
        AdminClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn monitor(&self) -> MonitorClient<ClientChannel> {
        MonitorClient::new(self.line.clone())
    }

    pub(crate) fn pools(&self) -> PoolsClient<ClientChannel> {
        PoolsClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn orchestrator(&self) -> OrchestratorClient<ClientChannel> {
        OrchestratorClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn schedules(&self) -> SchedulesClient<ClientChannel> {
        SchedulesClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    pub(crate) fn kernel(&self) -> SafetyKernelClient<ClientChannel> {
        SafetyKernelClient::new(self.line.clone()).max_decoding_message_size(ANSWER_BYTES_MAX)
    }

    /// Unwraps an answer, or turns its status into an error.
    pub(crate) fn answer<T>(&self, result: Result<Response<T>, Status>) -> Result<T, CliError> {
        result.map(Response::into_inner).map_err(|status| self.error(&status))
    }

    /// An open stream that breaks means that the server went away, whatever code the transport reports.
    pub(crate) fn broken(&self, status: &Status) -> CliError {
        match status.code() {
            Code::Unknown | Code::Internal | Code::Cancelled | Code::Unavailable => {
                CliError::Unreachable { server: self.server.clone(), cause: status.message().to_owned() }
            }
            _ => self.error(status),
        }
    }

    pub(crate) fn error(&self, status: &Status) -> CliError {
        CliError::from_status(status, &self.server)
    }
}

fn header(name: &str, value: Option<&str>) -> Result<Option<MetadataValue<Ascii>>, CliError> {
    let parse =
        |text: &str| text.parse().map_err(|_| CliError::Usage(format!("--{name} {text:?} must be plain ASCII text")));
    value.map(parse).transpose()
}

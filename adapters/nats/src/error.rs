//! What can be wrong before there is a connection. A server that is away is no error: it is waited for.

use lockgate_core::ids::NameError;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no NATS server is named; give at least one address such as nats://127.0.0.1:4222")]
    NoServer,
    #[error("the NATS address {address:?} cannot be read: {why}; write it like nats://host:4222")]
    Address { address: String, why: String },
    #[error("the installation {name:?} cannot be part of a NATS subject: it {why}")]
    Installation { name: String, why: NameError },
    #[error("the NATS client does not start: {0}")]
    Client(String),
}

//! Errors before a connection exists. An unreachable server is no error: the client keeps trying.

use lockgate_core::ids::NameError;

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("no NATS server is named; give at least one address such as nats://127.0.0.1:4222")]
    NoServer,
    #[error("the NATS address {address:?} cannot be read: {why}; write it like nats://host:4222")]
    Address { address: String, why: String },
    #[error("the installation {name:?} cannot be part of a NATS subject: it {why}")]
    Installation { name: String, why: NameError },
    #[error("the NATS queue group {name:?} cannot be used: it {why}")]
    QueueGroup { name: String, why: NameError },
    #[error(
        "NATS_URL names another machine and does not begin with tls://, so everything would travel in the clear: write tls://, \
         or insist with --insecure-servers"
    )]
    InTheClear,
    #[error("NATS_TLS files are given, but NATS_URL does not ask for TLS: write tls://, or leave them out")]
    Contradiction,
    #[error("NATS cannot be reached: {0}")]
    Tls(String),
    #[error("the NATS client does not start: {0}")]
    Client(String),
}

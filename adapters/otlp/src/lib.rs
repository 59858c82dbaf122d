//! Exports spans to an OpenTelemetry collector, over OTLP: HTTP or gRPC, both with protobuf.
//!
//! [`Exporter::record`] only puts spans into a bounded queue; one task sends them in batches. Spans without room, or without
//! a collector within a few tries, are dropped and counted: jobs never wait for observers.

mod exporter;
mod queue;
mod sampler;
mod send;
mod settings;
pub mod wire;

pub use exporter::{ExportCounters, Exporter};
pub use sampler::Sampler;
pub use settings::{Protocol, Settings, SettingsError};

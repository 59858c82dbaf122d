//! Spans out to an OpenTelemetry collector, over OTLP: HTTP or gRPC, both with protobuf.
//!
//! [`Exporter::record`] only puts spans into a bounded queue; one task sends them in batches. What finds no room, or no
//! collector within a few tries, is dropped and counted: jobs never wait for those who watch them.

mod exporter;
mod queue;
mod sampler;
mod send;
mod settings;
pub mod wire;

pub use exporter::{ExportCounters, Exporter};
pub use sampler::Sampler;
pub use settings::{Protocol, Settings, SettingsError};

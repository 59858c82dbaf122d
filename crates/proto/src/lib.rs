//! The public contract as Rust types, generated from `proto/`.

/// Package `lockgate.v1`.
#[allow(clippy::all, clippy::pedantic, unreachable_pub, missing_docs, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("lockgate.v1");

    /// For gRPC reflection.
    pub const DESCRIPTORS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/descriptors.bin"));
}

/// What KEDA asks.
#[allow(clippy::all, clippy::pedantic, unreachable_pub, missing_docs, reason = "generated")]
pub mod keda {
    tonic::include_proto!("externalscaler");
}

//! The public contract as Rust types, and the conversions to and from `core`.

mod dag;
mod job;
mod names;
mod output;
mod request;
mod result;
mod subject;
mod verdict;

pub use dag::{known_run_state, percent, run_changes, run_head, run_whole};
pub use job::{job, platform_labels};
pub use names::{known_priority, known_state};
pub use output::{output_stage_name, output_verdict_from_wire, output_verdict_to_wire};
pub use request::{json, judged, new_job};
pub use result::outcome;
pub use subject::{subject_from_wire, subject_to_wire};
pub use verdict::{
    access_to_wire, explanation_from_wire, explanation_to_wire, known_decision, scope_name, verdict_from_wire,
    verdict_to_wire,
};

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

/// JSON text as wire bytes. The text is shared, not copied.
pub fn json_bytes(json: &lockgate_core::request::Json) -> bytes::Bytes {
    struct Shared(lockgate_core::request::Json);

    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }

    bytes::Bytes::from_owner(Shared(json.clone()))
}

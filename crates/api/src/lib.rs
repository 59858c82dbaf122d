//! The messages of the public contract from and to the words of `core`.

mod dag;
mod job;
mod names;
mod output;
mod request;
mod result;
mod retry;
mod subject;
mod verdict;

use lockgate_core::request::Json;

pub use dag::{KnownState, known_run_state, percent, run_changes, run_head, run_whole};
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

/// What has a message, or a part of one, of its own.
pub trait ToWire {
    type Wire;

    fn to_wire(&self) -> Self::Wire;
}

/// What is read off the wire whatever stands there.
pub(crate) trait FromWire {
    type Wire;

    fn from_wire(wire: Self::Wire) -> Self;
}

/// JSON text as wire bytes. The text is shared, not copied.
pub fn json_bytes(json: &Json) -> bytes::Bytes {
    struct Shared(Json);

    impl AsRef<[u8]> for Shared {
        fn as_ref(&self) -> &[u8] {
            self.0.as_str().as_bytes()
        }
    }

    bytes::Bytes::from_owner(Shared(json.clone()))
}

//! What the Stores on SQLite and PostgreSQL do alike: how rows are encoded, which is on disk and must not move, and what they do
//! before and between their statements.

pub mod codes;
mod encoded_run_step;
mod encoded_schedule_turn;
mod erasure;
mod job_texts;
pub mod packed;

pub use codes::UnknownCode;
pub use encoded_run_step::EncodedStep;
pub use encoded_schedule_turn::{EncodedScheduleTurn, EncodedSlot};
pub use erasure::ErasureSearch;
pub use job_texts::JobTexts;

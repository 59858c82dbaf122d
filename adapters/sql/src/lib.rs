//! Shared by the Stores on SQLite and PostgreSQL: the encoding of rows, which is stored and must not change, and work before
//! and between statements.

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

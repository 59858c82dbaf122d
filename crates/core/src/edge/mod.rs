//! The edge: one life of a gateway process as the holder of worker streams, as a pure machine.
//!
//! [`EdgeState`] knows the sessions, what each holds, where places are free and what was heard of workers at other processes. It is told
//! what happened (`on_…`) and when, and answers with [`EdgeEffect`]s; it reads no clock, waits for nothing and sends nothing. The engine
//! locks it, calls it and performs the effects.
//!
//! Several batches may be under way at once. An attempt takes its place before its dispatch is committed and gives it back if that
//! fails. Commits may end in any order: assignments go out strictly in the order of their numbers, and results are acknowledged in
//! the order in which they came.

mod attempt;
mod beat;
mod dispatch;
mod effect;
mod fleet;
mod hello;
mod moment;
mod overview;
mod pace;
mod protocol;
mod results;
mod revoke;
mod seats;
mod session;
mod sighting;
mod silence;
mod starts;
mod state;
mod stop;
#[cfg(test)]
mod tests;

pub use dispatch::{TracedJob, Unplaced};
pub use effect::{Departed, EdgeEffect, LeftAttempt};
pub use fleet::{RemoteSession, StrangerView};
pub use hello::{Arrival, Greeting, Reconciled};
pub use moment::Moment;
pub use overview::SessionView;
pub use protocol::{
    Acknowledged, Assignment, AttemptProgress, Beat, Began, FromWorker, Hello, InventoryItem, LogReport, ResultReport,
    ToWorker, Welcome,
};
pub use results::ReportedJob;
pub use seats::{FreeSeat, SeatPlan, Want};
pub use sighting::{LEAVING_MAX, SEEN_LIFE, Sighting};
pub use state::{EdgeRules, EdgeState};

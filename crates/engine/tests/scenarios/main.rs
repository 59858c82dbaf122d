//! The engine on the memory ports, in virtual time: bounds that users are promised.

mod admission;
mod approvals;
mod attaches;
mod bounds;
mod bypasses;
mod cluster;
mod families;
mod lanes;
mod letters;
mod memos;
mod numbers;
mod outputs;
mod places;
mod policies;
mod pools;
mod posted;
mod prefetch;
mod registry;
mod repeats;
mod runs;
mod sagas;
mod schedules;
mod slots;
mod stage;
mod traces;
mod unread;

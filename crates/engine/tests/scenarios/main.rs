//! The engine on the memory ports, in virtual time: bounds that users are promised.

mod bounds;
mod numbers;
mod places;
mod stage;

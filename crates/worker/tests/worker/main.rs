//! The worker against a server played by the test, over a real connection.

mod attempts;
mod builtin;
mod edge;
mod leaving;
mod reattach;
mod running;

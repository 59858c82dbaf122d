//! The worker against a server played by the test, over a real connection.

mod access;
mod attempts;
mod beats;
mod builtin;
mod bulkheads;
mod children;
mod edge;
mod faults;
mod leaving;
mod prefetch;
mod reattach;
mod running;

//! Doorbells and messages on NATS.

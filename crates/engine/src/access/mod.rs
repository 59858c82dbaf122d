//! Credentials: who comes in with which, made, looked at, replaced and ended.

mod keyring;

pub(crate) use keyring::Keyring;

//! Pools as their operators write them.

mod doc;
mod example;
mod limits;
mod load_errors;
mod loading;
mod properties;
mod schema;

use std::sync::Arc;

use super::*;
use crate::config::ConfigError;
use crate::lane::{LaneKey, Priority, Shape};

fn load(text: &str) -> Pools {
    Pools::load("pools.yaml", text).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")))
}

fn shown(errors: &[ConfigError]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// The errors of a text that must not load.
fn errors(text: &str) -> Vec<String> {
    shown(&Pools::load("pools.yaml", text).expect_err("broken pools were loaded"))
}

/// The names of the pools a topic leads to.
fn led_to(pools: &Pools, topic: &str) -> Vec<String> {
    pools.mapped(&Shape::of(topic)).into_iter().flat_map(|names| names.iter()).map(ToString::to_string).collect()
}

fn lane(tenant: &str, shape: Shape) -> LaneKey {
    LaneKey { priority: Priority::Default, tenant: tenant.into(), shape: Arc::new(shape) }
}

//! What both doors say of workflows.

use lockgate_core::request::{FieldError, Json};
use lockgate_engine::RunOrder;
use serde_json::{Map, Value};

/// Named in errors of a definition that came without a name.
pub(crate) const FILE: &str = "dag.yaml";

/// The parameters of a run, by the one rule for all JSON that comes in.
pub(crate) fn params(text: &str) -> Result<Map<String, Value>, FieldError> {
    match Json::read(text).map_err(|error| error.in_field("params"))? {
        Value::Object(params) => Ok(params),
        _ => Err(FieldError::new("params", "must be a JSON map")),
    }
}

pub(crate) fn resolve(node: String, item: Option<u32>, retry: bool) -> RunOrder {
    if retry { RunOrder::Retry { node, item } } else { RunOrder::Resolve { node, item } }
}

//! What both doors say of workflows.

use lockgate_engine::RunOrder;

/// Named in errors of a definition that came without a name.
pub(crate) const FILE: &str = "dag.yaml";

pub(crate) fn resolve(node: String, item: Option<u32>, retry: bool) -> RunOrder {
    if retry { RunOrder::Retry { node, item } } else { RunOrder::Resolve { node, item } }
}

//! Reads the `fairness` section.

use super::super::{Fairness, PriorityShares, WEIGHT_MAX, keys};
use super::by_tenant;
use crate::config::ConfigReport;
use crate::config::read::{self, Fields};
use crate::config::yaml::{YamlNode, YamlValue};
use crate::lane::Priority;

const STRICT: &str = "strict";

pub(super) fn read(node: &YamlNode, report: &mut ConfigReport) -> Option<Fairness> {
    read::some_entries(node, "fairness", report)?;
    let fields = Fields::of(node, &keys::FAIRNESS, report)?;
    let priorities = fields.get("priorities").and_then(|node| priorities(node, report));
    let tenants = fields.get("tenants").map(|node| by_tenant(node, "tenants", WEIGHT_MAX, report));
    let default = Fairness::default();
    Some(Fairness { priorities: priorities.unwrap_or(default.priorities), tenants: tenants.unwrap_or_default() })
}

fn priorities(node: &YamlNode, report: &mut ConfigReport) -> Option<PriorityShares> {
    match &node.value {
        YamlValue::Scalar { text, .. } if text == STRICT => Some(PriorityShares::Strict),
        YamlValue::Scalar { text, .. } => {
            let message = "priorities must be strict, or weights such as {critical: 64, high: 16, default: 4, low: 1}";
            report.unknown(node.at, message, text, [STRICT]);
            None
        }
        _ => weights(node, report).map(PriorityShares::Weights),
    }
}

/// A priority that is left out keeps its default.
fn weights(node: &YamlNode, report: &mut ConfigReport) -> Option<[u32; 4]> {
    read::some_entries(node, "priorities", report)?;
    let fields = Fields::of(node, &keys::PRIORITIES, report)?;
    Some(Priority::ALL.map(|priority| {
        let given = fields.get(priority.as_str());
        let weight = given.and_then(|node| read::count(node, &format!("the weight of {priority}"), WEIGHT_MAX, report));
        weight.unwrap_or_else(|| priority.weight())
    }))
}

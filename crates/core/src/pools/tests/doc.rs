//! The reference for users knows every key and every reason of this module.

use super::super::keys;
use super::*;

const DOC: &str = include_str!("../../../../../docs/pools.md");

#[test]
fn the_reference_names_every_key() {
    let sections = [&keys::FILE, &keys::POOL, &keys::OVERLOAD, &keys::LIMIT, &keys::FAIRNESS, &keys::PRIORITIES];
    for key in sections.iter().flat_map(|section| section.keys) {
        assert!(DOC.contains(&format!("`{key}`")), "{key}");
    }
}

#[test]
fn the_reference_names_every_reason_for_having_no_route() {
    for reason in [Unrouted::NoMapping, Unrouted::PreferredPool, Unrouted::AllowedPools] {
        assert!(DOC.contains(&format!("| `{reason}` |")), "{reason}");
    }
}

#[test]
fn the_reference_states_the_bounds_and_defaults_of_the_code() {
    let weights = Priority::ALL.map(|priority| format!("{priority}: {}", priority.weight())).join(", ");
    let turns = format!("1 to {WEIGHT_MAX}");
    let counts = format!("from 1 to {CONCURRENT_MAX}");
    for fact in [format!("`{{{weights}}}`"), turns, counts] {
        assert!(DOC.contains(&fact), "{fact}");
    }
}

//! The reference for users knows every key, word and bound of the language, and its examples load.

use super::super::keys;
use super::super::load::{AT_ONCE_MAX, TEXT_BYTES_MAX};
use super::*;

const DOC: &str = include_str!("../../../../../docs/dags.md");

#[test]
fn the_reference_names_every_key_and_word() {
    let sections = [&keys::FILE, &keys::PARAM, &keys::NODE, &keys::APPROVAL, &keys::COMPENSATION];
    for key in sections.iter().flat_map(|section| section.keys) {
        assert!(DOC.contains(&format!("`{key}`")), "{key}");
    }
    let words = Join::ALL.map(Join::as_str).into_iter().chain(OnFail::ALL.map(OnFail::as_str));
    for word in words.chain(ParamKind::ALL.map(ParamKind::as_str)) {
        assert!(DOC.contains(&format!("`{word}`")), "{word}");
    }
    for state in NodeState::ALL.map(NodeState::as_str).into_iter().chain(RunState::ALL.map(RunState::as_str)) {
        assert!(DOC.contains(state), "{state}");
    }
}

#[test]
fn the_reference_states_the_bounds_of_the_code() {
    let (nodes, items, text) =
        (format!("{NODES_MAX} nodes"), format!("{ITEMS_MAX} items"), format!("{} MiB", TEXT_BYTES_MAX >> 20));
    let (at_once, depth) = (format!("1 to {AT_ONCE_MAX}"), format!("{DEPTH_MAX} runs deep"));
    for fact in [nodes, items, text, at_once, depth] {
        assert!(DOC.contains(&fact), "{fact}");
    }
}

#[test]
fn the_definitions_in_the_reference_load() {
    let blocks: Vec<&str> = DOC.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let whole: Vec<&str> = blocks.into_iter().filter(|block| block.contains("version: 1")).collect();
    assert!(!whole.is_empty());
    whole.iter().for_each(|block| drop(load(block)));
}

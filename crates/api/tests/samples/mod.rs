//! One message of each kind, with every field set.

pub(crate) mod access;
pub(crate) mod dags;
pub(crate) mod governance;
pub(crate) mod jobs;
pub(crate) mod overview;
pub(crate) mod schedules;

/// 2026-11-18T19:48:00.000Z, and so many seconds.
fn at(seconds: i64) -> i64 {
    1_795_031_280_000 + seconds * 1_000
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn pairs(pairs: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    pairs.iter().map(|(name, value)| (text(name), text(value))).collect()
}

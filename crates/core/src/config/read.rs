//! Reads typed values from a YAML tree. A value that does not fit is reported at its position and read as absent.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use super::error::{ConfigReport, SourcePosition};
use super::section::Section;
use super::yaml::{YamlEntry, YamlNode, YamlValue, plain_to_json};
use crate::glob::Glob;
use crate::ids::check_name;
use crate::limits::SPAN_MS_MAX;

/// A map with only known keys.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    pub(crate) at: SourcePosition,
    section: &'static Section,
    entries: &'a [YamlEntry],
}

impl<'a> Fields<'a> {
    /// Reports every key that the section does not have.
    pub(crate) fn of(node: &'a YamlNode, section: &'static Section, report: &mut ConfigReport) -> Option<Self> {
        let entries = entries(node, section.name, report)?;
        for entry in entries.iter().filter(|entry| !section.keys.contains(&entry.key.as_str())) {
            let message = format!("unknown key {:?} in {}", entry.key, section.name);
            report.unknown(entry.at, message, &entry.key, section.keys.iter().copied());
        }
        Some(Self { at: node.at, section, entries })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a YamlNode> {
        debug_assert!(self.section.keys.contains(&key), "{key} is not in the list of {}", self.section.name);
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The value; reports an error if it is missing.
    pub(crate) fn need(&self, key: &str, report: &mut ConfigReport) -> Option<&'a YamlNode> {
        let found = self.get(key);
        if found.is_none() {
            report.refuse(self.at, format!("{} has no {key:?}; add it", self.section.name));
        }
        found
    }

    /// The position of a key, for errors about its presence.
    pub(crate) fn place(&self, key: &str) -> Option<SourcePosition> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| entry.at)
    }
}

/// The entries of a map with free keys.
pub(crate) fn entries<'a>(node: &'a YamlNode, name: &str, report: &mut ConfigReport) -> Option<&'a [YamlEntry]> {
    match &node.value {
        YamlValue::Map(entries) => Some(entries),
        _ => refused(report, node.at, format!("{name} must be a map of keys and values")),
    }
}

/// The entries of a map with free keys that must not be empty.
pub(crate) fn some_entries<'a>(node: &'a YamlNode, name: &str, report: &mut ConfigReport) -> Option<&'a [YamlEntry]> {
    match entries(node, name, report)? {
        [] => refused(report, node.at, format!("{name} is empty; remove it or name at least one")),
        entries => Some(entries),
    }
}

pub(crate) fn items<'a>(node: &'a YamlNode, name: &str, report: &mut ConfigReport) -> Option<&'a [YamlNode]> {
    match &node.value {
        YamlValue::List(items) if items.is_empty() => {
            refused(report, node.at, format!("{name} is empty; remove it or name at least one"))
        }
        YamlValue::List(items) => Some(items),
        _ => refused(report, node.at, format!("{name} must be a list")),
    }
}

/// A text that is not empty. Scalars that YAML reads as a number, a boolean or null must be quoted, so that every reader of
/// the file sees the same value.
pub(crate) fn text<'a>(node: &'a YamlNode, name: &str, report: &mut ConfigReport) -> Option<&'a str> {
    match &node.value {
        YamlValue::Scalar { text, plain: true } if node.is_null() || !plain_to_json(text).is_string() => {
            let hint = if text.is_empty() { String::new() } else { format!("; put it in quotes: {text:?}") };
            refused(report, node.at, format!("{name} must be text{hint}"))
        }
        YamlValue::Scalar { text, .. } if text.trim().is_empty() => {
            refused(report, node.at, format!("{name} must not be empty"))
        }
        YamlValue::Scalar { text, .. } => Some(text),
        _ => refused(report, node.at, format!("{name} must be text")),
    }
}

/// A text that may be empty, such as the value of a label. Null is no text.
pub(crate) fn value<'a>(node: &'a YamlNode, name: &str, report: &mut ConfigReport) -> Option<&'a str> {
    match &node.value {
        YamlValue::Scalar { text, plain: false } => Some(text),
        _ => text(node, name, report),
    }
}

/// A list of texts with their positions.
pub(crate) fn texts<'a>(
    node: &'a YamlNode,
    name: &str,
    report: &mut ConfigReport,
) -> Option<Vec<(&'a str, SourcePosition)>> {
    let items = items(node, name, report)?;
    Some(
        items
            .iter()
            .filter_map(|item| text(item, &format!("an entry of {name}"), report).map(|text| (text, item.at)))
            .collect(),
    )
}

/// Reports every text that occurs earlier in the list.
pub(crate) fn distinct(texts: &[(&str, SourcePosition)], name: &str, report: &mut ConfigReport) {
    let mut seen = BTreeSet::new();
    for (text, at) in texts.iter().filter(|(text, _)| !seen.insert(*text)) {
        report.refuse(*at, format!("{text:?} stands twice in {name}; remove one"));
    }
}

/// The text if it is a valid name. `kind` says what it names.
pub(crate) fn name<'a>(text: &'a str, kind: &str, at: SourcePosition, report: &mut ConfigReport) -> Option<&'a str> {
    match check_name(text) {
        Ok(()) => Some(text),
        Err(error) => refused(report, at, format!("{kind} {text:?} {error}")),
    }
}

/// A topic pattern of `list`.
pub(crate) fn glob(text: &str, at: SourcePosition, list: &str, report: &mut ConfigReport) -> Option<Glob> {
    match Glob::parse(text) {
        Ok(glob) => Some(glob),
        Err(error) => refused(report, at, format!("bad glob {text:?} in {list}: it {error}")),
    }
}

/// A number of things, at least one.
pub(crate) fn count(node: &YamlNode, name: &str, max: u32, report: &mut ConfigReport) -> Option<u32> {
    whole(node, name, 1..=u64::from(max), report).and_then(|number| u32::try_from(number).ok())
}

pub(crate) fn whole(node: &YamlNode, name: &str, range: RangeInclusive<u64>, report: &mut ConfigReport) -> Option<u64> {
    let (low, high) = (*range.start(), *range.end());
    match plain(node).and_then(|text| text.parse::<u64>().ok()) {
        Some(number) if range.contains(&number) => Some(number),
        _ if low == high => refused(report, node.at, format!("{name} must be {low}")),
        _ => refused(report, node.at, format!("{name} must be a whole number between {low} and {high}")),
    }
}

pub(crate) fn number(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<f64> {
    match plain(node).and_then(|text| plain_to_json(text).as_f64()) {
        Some(number) => Some(number),
        None => refused(report, node.at, format!("{name} must be a number")),
    }
}

pub(crate) fn truth(node: &YamlNode, name: &str, report: &mut ConfigReport) -> Option<bool> {
    match plain(node).and_then(|text| plain_to_json(text).as_bool()) {
        Some(truth) => Some(truth),
        None => refused(report, node.at, format!("{name} must be true or false")),
    }
}

/// A duration in milliseconds, written `500ms`, `30s`, `5m`, `2h` or `7d`.
pub(crate) fn span(node: &YamlNode, name: &str, range: RangeInclusive<u64>, report: &mut ConfigReport) -> Option<u64> {
    match plain(node).and_then(parse_span) {
        Some(millis) if range.contains(&millis) => Some(millis),
        Some(_) => {
            let (low, high) = (write_span(*range.start()), write_span(*range.end()));
            refused(report, node.at, format!("{name} must be between {low} and {high}"))
        }
        None => refused(report, node.at, format!("{name} must be a time such as 500ms, 30s, 5m, 2h or 7d")),
    }
}

/// A number of bytes, plain or with a unit: `4096`, `256KiB`, `10GiB`.
pub(crate) fn bytes(node: &YamlNode, name: &str, range: RangeInclusive<u64>, report: &mut ConfigReport) -> Option<u64> {
    match plain(node).and_then(parse_bytes) {
        Some(bytes) if range.contains(&bytes) => Some(bytes),
        _ => {
            let (low, high) = (range.start(), range.end());
            refused(report, node.at, format!("{name} must be {low} to {high} bytes, such as 4096, 256KiB, 5MiB or 10GiB"))
        }
    }
}

/// One of a few words.
pub(crate) fn choice<T: Copy>(node: &YamlNode, name: &str, words: &[(&str, T)], report: &mut ConfigReport) -> Option<T> {
    let word = text(node, name, report)?;
    if let Some((_, value)) = words.iter().find(|(known, _)| *known == word) {
        return Some(*value);
    }
    let known: Vec<&str> = words.iter().map(|(known, _)| *known).collect();
    let message = format!("unknown {name} {word:?}; it must be one of {}", known.join(", "));
    report.unknown(node.at, message, word, known);
    None
}

fn plain(node: &YamlNode) -> Option<&str> {
    match &node.value {
        YamlValue::Scalar { text, plain: true } => Some(text),
        _ => None,
    }
}

fn refused<T>(report: &mut ConfigReport, at: SourcePosition, message: String) -> Option<T> {
    report.refuse(at, message);
    None
}

const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZES: [(&str, u64); 5] = [("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

fn parse_bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, size) = SIZES.into_iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(size)
}

/// None if the text is no duration or longer than a year.
fn parse_span(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(millis).filter(|span| *span <= SPAN_MS_MAX)
}

/// The duration in the largest unit that divides it.
pub(crate) fn write_span(millis: u64) -> String {
    let (unit, size) =
        UNITS.into_iter().rev().find(|(_, size)| millis >= *size && millis.is_multiple_of(*size)).unwrap_or(UNITS[0]);
    format!("{}{unit}", millis / size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_with_units() {
        for (text, millis) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("2h", 7_200_000), ("7d", 604_800_000)] {
            assert_eq!(parse_span(text), Some(millis));
            assert_eq!(write_span(millis), text);
        }
        for wrong in ["", "5", "m", "5 m", "-5m", "1.5h", "5w", "99999999999999999999d", "400d"] {
            assert_eq!(parse_span(wrong), None, "{wrong}");
        }
    }
}

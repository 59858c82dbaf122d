//! Parses YAML text into a tree in which every node knows its line.
//!
//! Only plain YAML is read: one document of maps, lists and scalars. Anchors, aliases, tags and directives are refused: a
//! rule must be readable where it stands, and a small file must not expand into a large one.

use std::collections::BTreeSet;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::error::{ConfigReport, SourcePosition};
use crate::json::number_fault;

/// The largest policy file. It is stored in every snapshot and sent to every replica.
pub(crate) const FILE_BYTES_MAX: usize = 2 * 1024 * 1024;
/// The deepest nesting of maps and lists. The languages need eight levels; payloads in test cases need some more.
const DEPTH_MAX: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct YamlNode {
    pub(crate) at: SourcePosition,
    pub(crate) value: YamlValue,
}

#[derive(Clone, Debug)]
pub(crate) enum YamlValue {
    /// `plain` scalars may be a number, a boolean or null; quoted ones are always text.
    Scalar {
        text: String,
        plain: bool,
    },
    List(Vec<YamlNode>),
    Map(Vec<YamlEntry>),
}

#[derive(Clone, Debug)]
pub(crate) struct YamlEntry {
    pub(crate) key: String,
    pub(crate) at: SourcePosition,
    pub(crate) value: YamlNode,
}

impl YamlNode {
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, YamlValue::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The value as JSON, with the scalars of YAML's core schema.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match &self.value {
            _ if self.is_null() => serde_json::Value::Null,
            YamlValue::Scalar { text, plain: false } => text.as_str().into(),
            YamlValue::Scalar { text, plain: true } => plain_to_json(text),
            YamlValue::List(items) => items.iter().map(Self::to_json).collect(),
            YamlValue::Map(entries) => entries.iter().map(|entry| (entry.key.clone(), entry.value.to_json())).collect(),
        }
    }
}

/// The value that YAML readers give a plain scalar. A value that JSON cannot express (`0x10`, `.inf`) stays text.
pub(crate) fn plain_to_json(text: &str) -> serde_json::Value {
    match text {
        "true" | "True" | "TRUE" => return true.into(),
        "false" | "False" | "FALSE" => return false.into(),
        _ => {}
    }
    let number = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = number.parse::<i64>() {
        return number.into();
    }
    if let Ok(number) = number.parse::<u64>() {
        return number.into();
    }
    match number.parse::<f64>() {
        Ok(float) if begins_like_a_number(text) && float.is_finite() => float.into(),
        _ => text.into(),
    }
}

/// False for words such as `inf` and `nan`, which Rust would parse as numbers.
fn begins_like_a_number(text: &str) -> bool {
    let number = text.strip_prefix('+').unwrap_or(text);
    number.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit() || c == '.')
}

/// The longest number that an error shows.
const NUMBER_CHARS_SHOWN: usize = 40;

/// Reports every number in the value called `name` that JSON would not keep exactly (docs/json.md).
pub(crate) fn check_numbers(node: &YamlNode, name: &str, report: &mut ConfigReport) {
    match &node.value {
        YamlValue::Scalar { text, plain: true } if begins_like_a_number(text) => {
            if let Some(fault) = number_fault(text) {
                let shown: String = text.chars().take(NUMBER_CHARS_SHOWN).collect();
                report.refuse_new(node.at, format!("{shown} in {name} {fault}; put it in quotes and send it as text"));
            }
        }
        YamlValue::Scalar { .. } => {}
        YamlValue::List(items) => items.iter().for_each(|item| check_numbers(item, name, report)),
        YamlValue::Map(entries) => entries.iter().for_each(|entry| check_numbers(&entry.value, name, report)),
    }
}

/// The tree of the one document in `text`; None with the errors in `report`.
pub(crate) fn parse(text: &str, report: &mut ConfigReport) -> Option<YamlNode> {
    parse_within(FILE_BYTES_MAX, text, report)
}

/// Like [`parse`], with another limit on the file's size.
pub(crate) fn parse_within(bytes_max: usize, text: &str, report: &mut ConfigReport) -> Option<YamlNode> {
    let start = SourcePosition { line: 1, column: 1 };
    if text.len() > bytes_max {
        report.refuse(start, format!("the file is larger than {} MiB; split it or shorten its lists", bytes_max >> 20));
        return None;
    }
    let options = granit_parser::options! {
        disallow_directives: true,
        flow_nesting_limit: DEPTH_MAX,
        block_nesting_limit: DEPTH_MAX,
    };
    let mut builder = Builder { report, open: Vec::new(), root: None, documents: 0, broken: false };
    for event in Parser::new_from_str_with_options(text, options) {
        match event {
            Ok((event, span)) => builder.take(event, place(&span)),
            Err(error) => {
                let mark = error.marker();
                let at = SourcePosition { line: mark.line().max(1), column: mark.col() + 1 };
                let hint = if has_star(text, at.line) { "; put texts that begin with * in quotes" } else { "" };
                builder.report.refuse(at, format!("not valid YAML: {}{hint}", error.kind()));
                return None;
            }
        }
        if builder.broken {
            return None;
        }
    }
    let Builder { report, root, .. } = builder;
    if root.as_ref().is_none_or(YamlNode::is_null) {
        report.refuse(start, "the file is empty");
        return None;
    }
    root
}

/// A pattern such as `*` without quotes is an alias in YAML and usually breaks its syntax, so the error suggests quotes.
fn has_star(text: &str, line: usize) -> bool {
    text.lines().nth(line - 1).is_some_and(|line| line.contains('*'))
}

fn place(span: &Span) -> SourcePosition {
    SourcePosition { line: span.start.line().max(1), column: span.start.col() + 1 }
}

/// A map or list that has not ended yet.
struct OpenCollection {
    at: SourcePosition,
    value: YamlValue,
    /// The key that waits for its value.
    key: Option<(String, SourcePosition)>,
    seen: BTreeSet<String>,
}

struct Builder<'a> {
    report: &'a mut ConfigReport,
    open: Vec<OpenCollection>,
    root: Option<YamlNode>,
    documents: usize,
    /// Set when a further error would only repeat the first one.
    broken: bool,
}

impl Builder<'_> {
    fn take(&mut self, event: Event<'_>, at: SourcePosition) {
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    self.fail(at, "a file holds one document; remove the second \"---\"");
                }
            }
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(_, 1.., _) | Event::MappingStart(_, 1.., _) => {
                self.fail(at, "anchors are not supported; write the value out");
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.fail(
                    at,
                    "aliases are not supported; write the value out, or in quotes if it is a text that begins with *",
                );
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, _, Some(_)) | Event::MappingStart(_, _, Some(_)) => {
                self.fail(at, "tags are not supported; remove the word that begins with \"!\"");
            }
            Event::Scalar(text, style, ..) => self.scalar(text.into_owned(), style, at),
            Event::SequenceStart(..) => self.open(at, YamlValue::List(Vec::new())),
            Event::MappingStart(..) => self.open(at, YamlValue::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(done) = self.open.pop() {
                    self.add(YamlNode { at: done.at, value: done.value });
                }
            }
            _ => {}
        }
    }

    fn fail(&mut self, at: SourcePosition, message: &str) {
        self.report.refuse(at, message);
        self.broken = true;
    }

    fn waits_for_key(&self) -> bool {
        self.open.last().is_some_and(|open| open.key.is_none() && matches!(open.value, YamlValue::Map(_)))
    }

    fn open(&mut self, at: SourcePosition, value: YamlValue) {
        if self.waits_for_key() {
            return self.fail(at, "a key must be text");
        }
        if self.open.len() >= DEPTH_MAX {
            return self.fail(at, &format!("nested deeper than {DEPTH_MAX} levels"));
        }
        self.open.push(OpenCollection { at, value, key: None, seen: BTreeSet::new() });
    }

    fn scalar(&mut self, text: String, style: ScalarStyle, at: SourcePosition) {
        if !self.waits_for_key() {
            return self.add(YamlNode { at, value: YamlValue::Scalar { text, plain: style == ScalarStyle::Plain } });
        }
        let Some(OpenCollection { key, seen, .. }) = self.open.last_mut() else { return };
        if !seen.insert(text.clone()) {
            self.report.refuse(at, format!("key {text:?} is given twice"));
        }
        *key = Some((text, at));
    }

    fn add(&mut self, node: YamlNode) {
        match self.open.last_mut() {
            None => self.root = Some(node),
            Some(OpenCollection { value: YamlValue::List(items), .. }) => items.push(node),
            Some(OpenCollection { value: YamlValue::Map(entries), key, .. }) => {
                if let Some((key, at)) = key.take() {
                    entries.push(YamlEntry { key, at, value: node });
                }
            }
            Some(OpenCollection { value: YamlValue::Scalar { .. }, .. }) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(text: &str) -> Vec<String> {
        let mut report = ConfigReport::new("p.yaml");
        parse(text, &mut report);
        report.into_errors().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn every_node_knows_its_line() {
        let mut report = ConfigReport::new("p.yaml");
        let root = parse("a: 1\nb:\n  - x\n  - {c: 'y'}\n", &mut report).unwrap();
        let YamlValue::Map(entries) = &root.value else { panic!("a map") };
        assert_eq!(entries[1].at, SourcePosition { line: 2, column: 1 });
        let YamlValue::List(items) = &entries[1].value.value else { panic!("a list") };
        assert_eq!((items[0].at.line, items[1].at.line), (3, 4));
        assert_eq!(root.to_json(), serde_json::json!({"a": 1, "b": ["x", {"c": "y"}]}));
    }

    #[test]
    fn plain_scalars_mean_what_the_core_schema_says() {
        let mut report = ConfigReport::new("p.yaml");
        let root = parse("[~, true, '1', 1, -2, 1.5, no, 1e3, .5, a-, nan, 0x10]", &mut report).unwrap();
        assert_eq!(root.to_json(), serde_json::json!([null, true, "1", 1, -2, 1.5, "no", 1000.0, 0.5, "a-", "nan", "0x10"]));
    }

    #[test]
    fn a_number_that_would_change_is_refused_with_its_line() {
        let told = |text: &str, mut report: ConfigReport| {
            let root = parse(text, &mut report).unwrap();
            check_numbers(&root, "payload", &mut report);
            report.into_errors().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let text = "a: 9007199254740991\nb: [9007199254740992]\nc: '9007199254740993'\nd: {e: 1e400}\nf: inf\n";
        assert_eq!(
            told(text, ConfigReport::new("p.yaml")),
            [
                "p.yaml:2: 9007199254740992 in payload is a whole number beyond ±9007199254740991 (2^53 - 1), which not every \
                 reader keeps exact; put it in quotes and send it as text",
                "p.yaml:4: 1e400 in payload is too large for a double; put it in quotes and send it as text",
            ]
        );
        assert_eq!(told(text, ConfigReport::of_stored("p.yaml")), Vec::<String>::new(), "what was taken before stays");
    }

    #[test]
    fn what_hides_or_unfolds_content_is_refused_with_its_line() {
        assert_eq!(errors("a: &x 1\n"), ["p.yaml:1: anchors are not supported; write the value out"]);
        assert_eq!(errors("a: !!str 1\n"), ["p.yaml:1: tags are not supported; remove the word that begins with \"!\""]);
        assert_eq!(errors("a: 1\n---\nb: 1\n"), ["p.yaml:2: a file holds one document; remove the second \"---\""]);
        assert_eq!(errors("a: 1\na: 2\n"), ["p.yaml:2: key \"a\" is given twice"]);
        assert_eq!(errors("? [a]\n: 1\n"), ["p.yaml:1: a key must be text"]);
        assert_eq!(errors(""), ["p.yaml:1: the file is empty"]);
        assert!(errors("a: [1\n")[0].contains("not valid YAML"));
        assert_eq!(errors(&"[".repeat(40)).len(), 1);
        assert!(errors(&"#".repeat(FILE_BYTES_MAX + 1))[0].contains("larger than 2 MiB"));
    }
}

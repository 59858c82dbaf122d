//! Whatever the text: no panic, honest spans, redaction that holds.

use proptest::prelude::*;
use serde_json::Value;

use super::{KEY, everything, sample, scan};
use crate::scan::{ScanReport, Scanners, decode};

const PIECES: &str = concat!(
    "ann@example.com|4111111111111111|4111 1111 1111 1111|DE89370400440532013000|+4930123456789|123-45-6789|",
    "password=Tr0ub4dor&3|\"token\":\"|https://a:b@c|:\\/\\/|\\u0040|\\n|\\|\\\\|\\ud83d|\"|'| |' or 1=1--|",
    "ignore all previous instructions|-----BEGIN RSA PRIVATE KEY-----|-----END |-----|eyJ|AKIA|sk-|8Q~|:AA|-us1|.atlasv1.|",
    "é|😀|@|+|-|.|{|}|[|]|,|:|1|[REDACTED:email]"
);
const TOKENS: [&str; 7] = ["AKIA{U16}", "ghp_{A36}", "glpat-{A20}", "hvs.{A30}", "SK{h32}", "{A3}8Q~{A31}", "{d9}:AA{A33}"];

/// Pieces that wake the rules, among pieces that disturb them.
fn piece() -> impl Strategy<Value = String> {
    let known = prop::sample::select(PIECES.split('|').collect::<Vec<_>>()).prop_map(str::to_owned);
    let tokens = prop::sample::select(TOKENS.to_vec()).prop_map(sample);
    prop_oneof![6 => known, 2 => tokens, 1 => "\\PC{0,6}"]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(Value::from(4_111_111_111_111_111_u64)),
        Just(Value::Null),
        Just(Value::from(true)),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn spans_are_honest(text: &str, report: &ScanReport) {
    for finding in &report.findings {
        assert!(finding.length > 0);
        assert!(text.get(finding.offset..finding.end()).is_some(), "{finding:?} in {text:?}");
    }
    assert!(report.findings.is_sorted_by_key(|finding| finding.offset));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_scanned_with_honest_spans(text in text()) {
        let report = scan(&text);
        spans_are_honest(&text, &report);
        prop_assert_eq!(Scanners::builtin().hits(&everything(), &text), !report.findings.is_empty());
    }

    #[test]
    fn any_bytes_are_scanned_or_unreadable(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let scanned = Scanners::builtin().scan_bytes(&everything(), &content, &KEY);
        prop_assert_eq!(scanned.is_ok(), std::str::from_utf8(&content).is_ok());
    }

    #[test]
    fn a_redacted_text_no_longer_hits(text in text()) {
        let scanners = Scanners::builtin();
        if let Some(clean) = scanners.redact(&everything(), &text, &scan(&text), &KEY) {
            prop_assert!(!scanners.hits(&everything(), &clean), "{}", clean);
        }
    }

    #[test]
    fn redacted_json_is_json_and_no_longer_hits(value in json()) {
        let scanners = Scanners::builtin();
        for text in [value.to_string(), format!("{value:#}")] {
            let report = scan(&text);
            spans_are_honest(&text, &report);
            let clean = scanners.redact(&everything(), &text, &report, &KEY);
            prop_assert!(clean.is_some() || report.truncated, "{}", text);
            if let Some(clean) = clean {
                prop_assert!(serde_json::from_str::<Value>(&clean).is_ok(), "{}", clean);
                prop_assert!(!scanners.hits(&everything(), &clean), "{}", clean);
            }
        }
    }

    #[test]
    fn what_is_found_in_a_text_is_found_in_its_json(text in text()) {
        // One more level of escapes than are undone is out of sight.
        prop_assume!(decode::views(&text).count() <= decode::LEVELS);
        let quoted = Value::from(text.as_str()).to_string();
        if Scanners::builtin().hits(&everything(), &text) {
            prop_assert!(Scanners::builtin().hits(&everything(), &quoted), "{}", quoted);
        }
    }
}

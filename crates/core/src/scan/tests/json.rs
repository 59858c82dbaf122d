//! Escapes, and redaction that keeps JSON whole.

use super::{KEY, everything, found, rules, sample, scan};
use crate::scan::{Finding, FindingKind, Scanners, redact};

fn redacted(text: &str) -> Option<String> {
    Scanners::builtin().redact(&everything(), text, &scan(text), &KEY)
}

#[test]
fn escaped_forms_are_found_and_named_by_raw_bytes() {
    let cases = [
        (r#"{"m":"ann\u0040example.com"}"#, "email", r"ann\u0040example.com"),
        (r#"{"u":"postgres:\/\/app:hunter22@db"}"#, "url_password", "hunter22"),
        (r#"{"m":"\u0061\u006e\u006e@example.com"}"#, "email", r"\u0061\u006e\u006e@example.com"),
        (r#"{"m":"😀 \ud83d\ude00ann@example.com"}"#, "email", "ann@example.com"),
        (r#"{"inner":"{\"password\":\"Tr0ub4dor&3\"}"}"#, "password_assignment", "Tr0ub4dor&3"),
        (r#"{"card":"4111\u00311111111 11"}"#, "", ""),
        (r#"{"card":"4111\u003111111111111"}"#, "credit_card", r"4111\u003111111111111"),
    ];
    for (text, rule, matched) in cases {
        let expected = if rule.is_empty() { vec![] } else { vec![(rule.to_owned(), matched.to_owned())] };
        assert_eq!(found(text), expected, "{text}");
    }
}

#[test]
fn a_secret_three_strings_deep_is_found() {
    let mut text = format!("line\n{}\nline", sample("ghp_{A36}"));
    for _ in 0..3 {
        text = serde_json::json!({ "log": text }).to_string();
        assert_eq!(rules(&text), ["github_pat"], "{text}");
    }
}

#[test]
fn a_redacted_text_names_the_rule_in_place_of_the_secret() {
    assert_eq!(redacted("mail ann@example.com now").as_deref(), Some("mail [REDACTED:email] now"));
}

#[test]
fn redacted_json_stays_json() {
    let cases = [
        (r#"{"m":"ann@example.com"}"#, r#"{"m":"[REDACTED:email]"}"#),
        (r#"{"card":4111111111111111}"#, r#"{"card":"[REDACTED:credit_card]"}"#),
        (r"[1,4111111111111111,2]", r#"[1,"[REDACTED:credit_card]",2]"#),
        ("4111111111111111", r#""[REDACTED:credit_card]""#),
        (r#"{"m":"x\nann@example.com\n"}"#, r#"{"m":"x\n[REDACTED:email]\n"}"#),
        (r#"{"ann@example.com":1}"#, r#"{"[REDACTED:email]":1}"#),
        (r#"{"u":"https:\/\/a:hunter22@h\/x"}"#, r#"{"u":"https:\/\/a:[REDACTED:url_password]@h\/x"}"#),
    ];
    for (text, expected) in cases {
        assert_eq!(redacted(text).as_deref(), Some(expected), "{text}");
    }
}

#[test]
fn a_span_over_several_values_is_taken_from_each_and_leaves_the_brackets() {
    let text = r#"{"a":"xSECRET","b":[12,true],"c":"SECRETx"}"#;
    let (start, end) = (text.find("SECRET").expect("a start"), text.rfind('x').expect("an end"));
    let finding =
        Finding { kind: FindingKind::Pattern, rule: "r".into(), offset: start, length: end - start, hash: String::new() };
    let expected = r#"{"a":"x[REDACTED:r]","[REDACTED:r]":["[REDACTED:r]","[REDACTED:r]"],"[REDACTED:r]":"[REDACTED:r]x"}"#;
    assert_eq!(redact(text, &[finding]).as_deref(), Some(expected));
}

#[test]
fn a_span_that_cuts_an_escape_takes_the_whole_of_it() {
    let text = r#""a\u0041b\\c""#;
    let cut = |offset, length| Finding { kind: FindingKind::Pattern, rule: "r".into(), offset, length, hash: String::new() };
    assert_eq!(redact(text, &[cut(4, 1)]).as_deref(), Some(r#""a[REDACTED:r]b\\c""#));
    assert_eq!(redact(text, &[cut(10, 1)]).as_deref(), Some(r#""a\u0041b[REDACTED:r]c""#));
}

#[test]
fn a_finding_of_another_text_is_refused() {
    let finding = |offset, length| Finding { kind: FindingKind::Pii, rule: "r".into(), offset, length, hash: String::new() };
    assert_eq!(redact("short", &[finding(3, 9)]), None);
    assert_eq!(redact("é", &[finding(1, 1)]), None);
    assert_eq!(redact("short", &[finding(usize::MAX, 2)]), None);
}

#[test]
fn overlapping_findings_of_two_kinds_are_both_reported_and_redacted_once() {
    let text = "x' UNION SELECT ann@example.com";
    let whole =
        Finding { kind: FindingKind::Injection, rule: "i".into(), offset: 0, length: text.len(), hash: String::new() };
    let part = Finding { kind: FindingKind::Pii, rule: "p".into(), offset: 16, length: 15, hash: String::new() };
    assert_eq!(redact(text, &[whole, part]).as_deref(), Some("[REDACTED:p]"));
}

#[test]
fn a_report_over_its_limit_says_so_and_is_not_redacted() {
    let at_limit: String = (0..32).map(|i| format!("u{i}@example.com ")).collect();
    assert_eq!(scan(&at_limit).findings.len(), 32);
    assert!(!scan(&at_limit).truncated);
    let over = at_limit + "last@example.com";
    assert_eq!(scan(&over).findings.len(), 32);
    assert!(scan(&over).truncated);
    assert_eq!(redacted(&over), None);
}

#[test]
fn a_report_holds_at_most_256_findings_in_all() {
    let kinds =
        ["ghp_{A36}", "gho_{A36}", "ghu_{A36}", "ghs_{A36}", "ghr_{A36}", "npm_{A36}", "AKIA{U16}", "dapi{h32}", "SK{h32}"];
    let text = kinds.map(|kind| format!("{} ", sample(kind)).repeat(30)).concat();
    let report = scan(&text);
    assert_eq!(report.findings.len(), 256);
    assert!(report.truncated);
}

#[test]
fn content_that_is_not_text_is_unreadable() {
    let scanners = Scanners::builtin();
    let refused = scanners.scan_bytes(&everything(), b"ann@example.com \xff", &KEY).expect_err("not text");
    assert_eq!(refused.offset, 16);
    assert_eq!(scanners.scan_bytes(&everything(), b"ann@example.com", &KEY).expect("text").findings.len(), 1);
}

#[test]
fn a_finding_shows_no_part_of_what_it_found() {
    let text = "ann@example.com";
    let report = scan(text);
    let shown = format!("{report:?} {} {KEY:?}", serde_json::to_string(&report).expect("JSON"));
    assert!(!shown.contains("ann") && !shown.contains("example") && !shown.contains("7, 7"), "{shown}");
}

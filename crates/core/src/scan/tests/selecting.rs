//! Choosing scanners, and patterns of one's own.

use super::{KEY, everything, sample};
use crate::scan::{FindingKind, PatternFault, Scanners, UserPattern};

fn pattern(name: &str, regex: &str, keywords: &[&str]) -> UserPattern {
    UserPattern { name: name.into(), regex: regex.into(), keywords: keywords.iter().map(|k| (*k).to_owned()).collect() }
}

fn fault(pattern: UserPattern) -> PatternFault {
    let name = pattern.name.clone();
    let error = Scanners::new(&[pattern]).err().expect("a refusal");
    assert_eq!(error.name, name);
    assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    error.fault
}

#[test]
fn a_selection_sees_what_was_selected_and_nothing_else() {
    let scanners = Scanners::builtin();
    let text = format!("ann@example.com {} +4930123456789", sample("AKIA{U16}"));
    let rules = |names: &[&str]| {
        let selection = scanners.select(names).expect("known names");
        let report = scanners.scan(&selection, &text, &KEY);
        assert_eq!(scanners.hits(&selection, &text), !report.findings.is_empty());
        report.findings.iter().map(|f| f.rule.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&["secrets"]), ["aws_access_key"]);
    assert_eq!(rules(&["pii"]), ["email", "phone"]);
    assert_eq!(rules(&["phone", "aws_access_key"]), ["aws_access_key", "phone"]);
    assert!(rules(&["injection", "jwt", "iban"]).is_empty());
    assert!(rules(&[]).is_empty());
}

#[test]
fn every_known_name_can_be_selected() {
    let scanners = Scanners::new(&[pattern("ticket", "T-[0-9]{4}", &[])]).expect("a good pattern");
    let names: Vec<&str> = scanners.names().collect();
    assert!(names.contains(&"secrets") && names.contains(&"aws_access_key") && names.contains(&"ticket"));
    assert!(names.iter().all(|name| scanners.select(&[name]).is_ok()));
}

#[test]
fn an_unknown_scanner_is_named_with_its_nearest_neighbour() {
    for (name, nearest) in [("aws_acess_key", "aws_access_key"), ("secret", "secrets"), ("e-mail", "email"), ("PII", "pii")]
    {
        let error = Scanners::builtin().select(&["pii", name]).expect_err("unknown");
        assert_eq!((error.name.as_str(), error.nearest.as_str()), (name, nearest));
    }
}

#[test]
fn a_pattern_is_found_by_its_name_and_by_its_group() {
    let scanners = Scanners::new(&[pattern("ticket", "T-[0-9]{4}", &[]), pattern("codename", "(?i)blue heron", &["HERON"])])
        .expect("good patterns");
    let text = "see T-1234 about Blue Heron";
    for (names, expected) in [(vec!["ticket"], 1), (vec!["patterns"], 2), (vec!["codename"], 1), (vec!["secrets"], 0)] {
        let selection = scanners.select(&names).expect("known names");
        let findings = scanners.scan(&selection, text, &KEY).findings;
        assert_eq!(findings.len(), expected, "{names:?}");
        assert!(findings.iter().all(|f| f.kind == FindingKind::Pattern));
    }
}

#[test]
fn a_pattern_with_keywords_sleeps_until_one_is_there() {
    let scanners = Scanners::new(&[pattern("number", "[0-9]{4}", &["invoice", "receipt"])]).expect("a good pattern");
    let selection = scanners.select(&["number"]).expect("a known name");
    assert!(!scanners.hits(&selection, "order 1234"));
    assert!(scanners.hits(&selection, "RECEIPT 1234"));
}

#[test]
fn a_selection_brings_its_own_patterns_wherever_it_is_used() {
    let scanners = Scanners::new(&[pattern("ticket", "T-[0-9]{4}", &[])]).expect("a good pattern");
    let selection = scanners.select(&["ticket"]).expect("a known name");
    assert!(Scanners::builtin().hits(&selection, "T-1234"));
    let other = Scanners::new(&[pattern("word", "heron", &[])]).expect("a good pattern");
    assert!(!other.hits(&selection, "heron"));
}

#[test]
fn a_pattern_that_cannot_be_used_is_refused_by_name() {
    assert!(matches!(fault(pattern("p", "a(", &[])), PatternFault::Syntax(_)));
    assert!(matches!(fault(pattern("p", r"(a)\1", &[])), PatternFault::Syntax(_)));
    for empty in ["", "a*", r"\b", "(?:x|)", "^"] {
        assert_eq!(fault(pattern("p", empty, &[])), PatternFault::MatchesEmpty, "{empty}");
    }
    assert_eq!(fault(pattern("p", r"[a&&b]", &[])), PatternFault::NeverMatches);
    assert_eq!(fault(pattern("p", r"(?:\pL{500}){500}", &[])), PatternFault::TooLarge);
    assert_eq!(fault(pattern("email", "x", &[])), PatternFault::Builtin);
    assert_eq!(fault(pattern("secrets", "x", &[])), PatternFault::Builtin);
    assert_eq!(fault(pattern("p", "x", &[""])), PatternFault::Keywords);
    assert_eq!(fault(pattern("p", "x", &["k"; 65])), PatternFault::Keywords);
    for name in ["", "Upper", "with space", "quo\"te", "]", &"x".repeat(65)] {
        assert_eq!(fault(pattern(name, "x", &[])), PatternFault::Name, "{name}");
    }
}

#[test]
fn two_patterns_of_one_name_and_too_many_patterns_are_refused() {
    let twice = Scanners::new(&[pattern("p", "x", &[]), pattern("p", "y", &[])]).err().expect("a refusal");
    assert_eq!(twice.fault, PatternFault::Duplicate);
    let many: Vec<_> = (0..257).map(|i| pattern(&format!("p{i}"), "x", &[])).collect();
    assert_eq!(Scanners::new(&many).err().expect("a refusal").fault, PatternFault::TooMany);
    assert!(Scanners::new(&many[..256]).is_ok());
}

#[test]
fn a_pattern_that_matches_its_own_redaction_is_never_redacted() {
    let scanners = Scanners::new(&[pattern("word", "(?i)redacted|secret", &[])]).expect("a good pattern");
    let selection = scanners.select(&["word"]).expect("a known name");
    let text = "a secret";
    let report = scanners.scan(&selection, text, &KEY);
    assert_eq!(scanners.redact(&selection, text, &report, &KEY), None);
}

#[test]
fn patterns_that_overlap_are_reported_each() {
    let scanners = Scanners::new(&[pattern("one", "abcd", &[]), pattern("two", "cdef", &[])]).expect("good patterns");
    let selection = scanners.select(&["patterns"]).expect("a group");
    let report = scanners.scan(&selection, "abcdef", &KEY);
    assert_eq!(report.findings.iter().map(|f| (f.offset, f.length)).collect::<Vec<_>>(), [(0, 4), (2, 4)]);
    assert_eq!(crate::scan::redact("abcdef", &report.findings).as_deref(), Some("[REDACTED:one]"));
    assert!(!scanners.hits(&everything(), "abcdef"));
}

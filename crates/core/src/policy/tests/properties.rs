//! Whatever is written into a file, loading ends in a policy or in errors.

use proptest::prelude::*;

use super::*;

/// Fragments that get far into the loader when they are put together.
#[rustfmt::skip]
const YAML_WORDS: &[&str] = &[
    "version: 1\n", "rules:\n", "  - ", "id: a\n", "    match: {", "}\n", "topics: [", "]", "'job.*'", ", ", "when: ",
    "\"payload.a > 1\"", "decision: deny\n", "    reason: x\n", "    ", "  ", "\n", ": ", "- ", "&a ", "*a", "!!str ",
    "|\n", "velocity: {max: 1, window: 1m}", "constraints: {", "tenants:\n", "output:\n", "patterns:\n",
    "scan: [secrets]", "---\n", "\t", "{", "[", "\"", "'", "#", "~", "0x1", "\u{feff}", "é",
];

#[rustfmt::skip]
const CEL_WORDS: &[&str] = &[
    "job", ".topic", ".labels", "payload", ".a", "[0]", "[", "]", "(", ")", "{", "}", " == ", " + ", " && ", " || ",
    "!", "-", "1", "1u", "1.5", "'x'", "\"", "b'x'", "r'", "'''", " in ", " ? ", " : ", ".all(x, ", ".map(x, ", "x",
    ".exists(", "has(", "size(", "int(", ".matches('a')", ", ", "null", "true", "now", ".?a", "optional.of(", "\\",
    "\u{0}", "é", "9223372036854775807",
];

fn yamlish() -> impl Strategy<Value = String> {
    let words = prop::sample::select(YAML_WORDS);
    prop::collection::vec(words, 0..40).prop_map(|parts| parts.concat())
}

fn celish() -> impl Strategy<Value = String> {
    let words = prop::sample::select(CEL_WORDS);
    prop::collection::vec(words, 0..24).prop_map(|parts| parts.concat())
}

fn with_expression(expression: &str) -> String {
    let text = serde_json::Value::from(expression);
    format!("version: 1\nrules:\n  - {{id: r, match: {{when: {text}}}, decision: allow, reason: yes}}\n")
}

fn check_loading(text: &str) {
    match Policy::load("policy.yaml", text) {
        Ok(policy) => drop(judge(&policy, &request(|_, _| {}))),
        Err(errors) => {
            assert!(!errors.is_empty());
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)), "{errors:?}");
        }
    }
}

/// A small policy in which rules overlap by topic and tenant in many ways.
fn indexed() -> impl Strategy<Value = String> {
    let topics = prop::sample::subsequence(vec!["a", "a.b", "a.*", "*", "a.b*", "*.b", "a*c", "b.c"], 0..4);
    let tenants = prop::sample::subsequence(vec!["t", "u", "v"], 0..3);
    let when = prop::sample::select(vec![
        "",
        "job.topic == 'a.b'",
        "payload.amount > 1 && job.topic in ['a', 'b.c']",
        "job.topic.startsWith('a.') || 'b.c' == job.topic",
        "job.labels.missing == 'x' && job.tenant == 't'",
        "job.labels.missing == 'x' || job.tenant in ['t', 'u']",
        "!(job.topic == 'a') && !(job.tenant == 'u')",
        "job.topic == 'a' && job.topic.startsWith('a') && payload.amount > 1000",
    ]);
    let rule = (topics, tenants, when).prop_map(|(topics, tenants, when)| {
        let list = |key: &str, names: &[&str]| {
            let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
            if names.is_empty() { String::new() } else { format!("{key}: [{}], ", quoted.join(", ")) }
        };
        let when = if when.is_empty() { String::new() } else { format!("when: {}", serde_json::Value::from(when)) };
        format!("{}{}{when}", list("topics", &topics), list("tenants", &tenants))
    });
    prop::collection::vec(rule, 1..8).prop_map(|rules| {
        let rules: Vec<String> = (0..)
            .zip(rules)
            .map(|(i, conditions): (usize, _)| {
                format!("  - {{id: r{i}, match: {{{conditions}}}, decision: allow, reason: x}}\n")
            })
            .collect();
        format!("version: 1\nrules:\n{}", rules.concat())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_refused(text in "\\PC{0,200}|[ -~\\n\\r\\t]{0,200}") {
        check_loading(&text);
    }

    #[test]
    fn anything_like_a_policy_loads_or_is_refused(text in yamlish()) {
        check_loading(&text);
        check_loading(&format!("version: 1\nrules:\n  - {text}"));
        let _ = load_cases("cases.yaml", &text);
    }

    #[test]
    fn any_expression_is_refused_or_evaluated(expression in celish()) {
        check_loading(&with_expression(&expression));
    }

    #[test]
    fn any_text_as_expression_is_refused_or_evaluated(expression in "\\PC{0,60}") {
        check_loading(&with_expression(&expression));
    }

    #[test]
    fn the_index_finds_the_rule_a_full_walk_finds(text in indexed(), topic in "[abc]([.][abc]){0,2}", tenant in "[tuvw]") {
        let policy = load(&text);
        let request = request(|new, caller| {
            new.topic = topic;
            caller.tenant = tenant.into();
        });
        let subject = Subject::new(&request, Timestamp::ZERO);
        let windows = Windows::default();
        prop_assert_eq!(policy.evaluate(&subject, &windows), policy.explain(&subject, &windows).verdict);
    }
}

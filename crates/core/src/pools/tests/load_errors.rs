//! Everything a load refuses, with the line to change.

use super::*;

fn assert_refused(text: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|line| format!("pools.yaml:{line}")).collect();
    assert_eq!(errors(text), expected, "{text}");
}

/// A file of which line 4 belongs to the pool `p`.
fn with_pool_line(line: &str) -> String {
    format!("topics: {{a: p}}\npools:\n  p:\n    {line}\n")
}

/// A file of which line 4 is a limit.
fn with_limit(limit: &str) -> String {
    format!("topics: {{a: p}}\npools: {{p: {{}}}}\nlimits:\n  - {{{limit}}}\n")
}

#[test]
fn topics_are_refused_at_their_line() {
    for (topics, message) in [
        ("a: gpu", "3: pool \"gpu\" is not declared; add it under pools"),
        ("a: [pol, pool]", "3: pool \"pol\" is not declared; add it under pools; did you mean \"pool\"?"),
        ("a: [pool, p, pool]", "3: \"pool\" stands twice in the pools of \"a\"; remove one"),
        ("a: []", "3: the pools of \"a\" is empty; remove it or name at least one"),
        ("a: {pool: p}", "3: the pools of \"a\" must be one name or a list of names"),
        ("a: [1]", "3: an entry of the pools of \"a\" must be text; put it in quotes: \"1\""),
        ("a:", "3: the pools of \"a\" must be one name or a list of names"),
        (
            "'job.[a]': p",
            "3: bad glob \"job.[a]\" in topics: it must not contain '['; topics have letters, digits and . _ - :, and * is the only wildcard",
        ),
        ("'a.**': p", "3: bad glob \"a.**\" in topics: it has two stars in a row; one is enough, it crosses dots"),
        ("*: p", "3: not valid YAML: simple key expected ':'; put texts that begin with * in quotes"),
        ("*.b: p", "3: not valid YAML: simple key expected ':'; put texts that begin with * in quotes"),
        ("a: [*p]", "3: not valid YAML: while parsing node, found unknown anchor; put texts that begin with * in quotes"),
        ("b: pool", "3: key \"b\" is given twice"),
    ] {
        let text = format!("topics:\n  b: [pool, p]\n  {topics}\npools: {{pool: {{}}, p: {{}}}}\n");
        assert_refused(&text, &[message]);
    }
}

#[test]
fn a_pool_that_no_topic_leads_to_is_refused() {
    assert_refused(
        "topics: {a: p}\npools:\n  p: {}\n  idle: {}\n",
        &["4: no topic leads to pool \"idle\"; name it under topics or remove it"],
    );
}

#[test]
fn pools_are_refused_at_their_line() {
    let whole = "must be a whole number between 1 and";
    for (line, message) in [
        ("dispach: direct", "unknown key \"dispach\" in the pool; did you mean \"dispatch\"?".to_owned()),
        ("dispatch: pull", "unknown dispatch \"pull\"; it must be one of queue, direct".into()),
        ("description: 3", "description must be text; put it in quotes: \"3\"".into()),
        ("capabilities: []", "capabilities is empty; remove it or name at least one".into()),
        ("capabilities: [a b]", "capability \"a b\" must not contain ' '; allowed are letters, digits and . _ - :".into()),
        ("capabilities: [git, git]", "\"git\" stands twice in capabilities; remove one".into()),
        ("labels: {}", "labels is empty; remove it or name at least one".into()),
        ("labels: {zone: 1}", "label \"zone\" must be text; put it in quotes: \"1\"".into()),
        ("labels: {'': eu}", "label \"\" must have 1 to 128 bytes and no control characters".into()),
        ("max_concurrent: 0", format!("max_concurrent {whole} 1000000")),
        ("max_concurrent: 1000001", format!("max_concurrent {whole} 1000000")),
        ("max_concurrent: many", format!("max_concurrent {whole} 1000000")),
        ("tenant_max_concurrent: -1", format!("tenant_max_concurrent {whole} 1000000")),
        ("tenants: {}", "tenants is empty; remove it or name at least one".into()),
        ("tenants: {acme: 0}", format!("the number of tenant \"acme\" {whole} 1000000")),
        ("tenants: {-a: 1}", "tenant \"-a\" must start and end with a letter or a digit".into()),
        ("overload: {}", "overload is empty; remove it or name at least one".into()),
        ("overload: {memory: 50}", "unknown key \"memory\" in overload".into()),
        ("overload: {cpu: 101}", format!("cpu {whole} 100")),
        ("overload: {active: 0}", format!("active {whole} 100")),
        ("overload: {gpu: 90%}", format!("gpu {whole} 100")),
    ] {
        assert_refused(&with_pool_line(line), &[&format!("4: {message}")]);
    }
    let long = format!("labels: {{a: {}}}", "x".repeat(4097));
    assert_refused(&with_pool_line(&long), &["4: label \"a\" must be at most 4096 bytes long"]);
}

#[test]
fn names_and_shapes_of_pools_are_refused_at_their_line() {
    for (pool, topic, message) in [
        ("a b: {}", "a b", "pool \"a b\" must not contain ' '; allowed are letters, digits and . _ - :"),
        ("p:", "p", "pool \"p\" says nothing; write \"p: {}\" for the defaults"),
        ("p: 3", "p", "the pool must be a map of keys and values"),
    ] {
        assert_refused(&format!("topics: {{a: {topic}}}\npools:\n  {pool}\n"), &[&format!("3: {message}")]);
    }
}

#[test]
fn limits_are_refused_at_their_line() {
    let rate = "rate must be 1 to 1000000 per s, m or h, such as 100/m";
    for (limit, message) in [
        ("name: l", "the limit limits nothing; add max_concurrent or rate"),
        ("max_concurrent: 1", "the limit has no \"name\"; add it"),
        ("name: 'a/b', rate: 1/s", "limit \"a/b\" must not contain '/'; allowed are letters, digits and . _ - :"),
        ("name: l, max: 1, rate: 1/s", "unknown key \"max\" in the limit"),
        ("name: l, max_concurrent: 0", "max_concurrent must be a whole number between 1 and 1000000"),
        ("name: l, rate: 100", "rate must be text; put it in quotes: \"100\""),
        ("name: l, rate: 0/s", rate),
        ("name: l, rate: 1000001/s", rate),
        ("name: l, rate: 5/day", rate),
        ("name: l, rate: 1/s, topics: []", "topics is empty; remove it or name at least one"),
        ("name: l, rate: 1/s, topics: [a, a]", "\"a\" stands twice in topics; remove one"),
        (
            "name: l, rate: 1/s, topics: [a.]",
            "bad glob \"a.\" in topics: it can match no topic: it must start and end with a letter or a digit",
        ),
        ("name: l, rate: 1/s, per: []", "per is empty; remove it or name at least one"),
        ("name: l, rate: 1/s, per: [topic, topic]", "\"topic\" stands twice in per; remove one"),
        (
            "name: l, rate: 1/s, per: [tenat]",
            "unknown per \"tenat\"; it must be one of tenant, topic, key; did you mean \"tenant\"?",
        ),
    ] {
        assert_refused(&with_limit(limit), &[&format!("4: {message}")]);
    }
}

#[test]
fn limits_have_different_names() {
    let file = |limits: &str| format!("topics: {{a: p}}\npools: {{p: {{}}}}\nlimits:{limits}\n");
    let again = "limit \"l\" is already named in line";
    assert_refused(
        &file("\n  - {name: l, rate: 1/s}\n  - {name: l, rate: 2/s}"),
        &[&format!("5: {again} 4; choose another name")],
    );
    assert_refused(&file(" [{name: l, rate: 1/s}, {name: l, rate: 2/s}]"), &[&format!("3: {again} 3; choose another name")]);
}

#[test]
fn fairness_is_refused_at_its_line() {
    let strict = "priorities must be strict, or weights such as {critical: 64, high: 16, default: 4, low: 1}";
    for (fairness, message) in [
        ("{}", "fairness is empty; remove it or name at least one".to_owned()),
        ("{weights: 3}", "unknown key \"weights\" in fairness".into()),
        ("{priorities: strickt}", format!("{strict}; did you mean \"strict\"?")),
        ("{priorities: 3}", strict.into()),
        ("{priorities: {}}", "priorities is empty; remove it or name at least one".into()),
        ("{priorities: {normal: 3}}", "unknown key \"normal\" in priorities".into()),
        ("{priorities: {low: 0}}", "the weight of low must be a whole number between 1 and 1000".into()),
        ("{priorities: [64, 16, 4, 1]}", "priorities must be a map of keys and values".into()),
        ("{tenants: {}}", "tenants is empty; remove it or name at least one".into()),
        ("{tenants: {acme: 1001}}", "the number of tenant \"acme\" must be a whole number between 1 and 1000".into()),
        ("{tenants: {a b: 1}}", "tenant \"a b\" must not contain ' '; allowed are letters, digits and . _ - :".into()),
    ] {
        let text = format!("topics: {{a: p}}\npools: {{p: {{}}}}\nfairness: {fairness}\n");
        assert_refused(&text, &[&format!("3: {message}")]);
    }
}

#[test]
fn files_that_are_no_pools_are_refused() {
    assert_refused("- a\n", &["1: the pools file must be a map of keys and values"]);
    assert_refused(
        "limits: []\n",
        &["1: the pools file has no \"topics\"; add it", "1: limits is empty; remove it or name at least one"],
    );
    assert_refused(
        "topics:\n  a: [p, 'p q']\n",
        &["2: pool \"p q\" must not contain ' '; allowed are letters, digits and . _ - :"],
    );
    assert_refused("topics: {a: p}\npools:\n", &["2: pools must be a map of keys and values"]);
    assert_refused(
        "topics: {}\npools: {}\n",
        &["1: topics is empty; remove it or name at least one", "2: pools is empty; remove it or name at least one"],
    );
}

#[test]
fn every_error_is_told_at_once_in_the_order_of_the_file() {
    assert_refused(
        "topics:
  job.echo: ehco
  job.*: [echo, echo]
pools:
  echo: {dispatch: push}
  idle: {max_concurrent: 0}
limit: []
limits:
  - {name: l}
fairness: {tenants: {acme: 0}}
",
        &[
            "2: pool \"ehco\" is not declared; add it under pools; did you mean \"echo\"?",
            "3: \"echo\" stands twice in the pools of \"job.*\"; remove one",
            "5: unknown dispatch \"push\"; it must be one of queue, direct",
            "6: no topic leads to pool \"idle\"; name it under topics or remove it",
            "6: max_concurrent must be a whole number between 1 and 1000000",
            "7: unknown key \"limit\" in the pools file; did you mean \"limits\"?",
            "9: the limit limits nothing; add max_concurrent or rate",
            "10: the number of tenant \"acme\" must be a whole number between 1 and 1000",
        ],
    );
}

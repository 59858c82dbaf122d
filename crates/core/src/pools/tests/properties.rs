//! Whatever is written into a file, loading ends in pools or in errors; whatever is loaded, a route keeps to it.

use proptest::prelude::*;

use super::*;
use crate::glob::Glob;

/// Fragments that get far into the loader when they are put together.
#[rustfmt::skip]
const WORDS: &[&str] = &[
    "topics:\n", "pools:\n", "limits:\n", "fairness:\n", "  job.echo: echo\n", "  'job.*': [echo, b]\n", "  echo: {}\n",
    "  b:\n", "    dispatch: direct\n", "    overload: {cpu: 90}\n", "    tenants: {acme: 1}\n", "  - name: l\n",
    "    rate: 1/s\n", "    per: [tenant, key]\n", "  priorities: strict\n", "  priorities: {low: 1}\n", "    ", "  ",
    "\n", ": ", "- ", "&a ", "*a", "!!str ", "|\n", "{", "}", "[", "]", ", ", "\"", "'", "#", "~", "---\n", "\t", "*",
    "0", "101", "\u{feff}", "é",
];
const PATTERNS: [&str; 8] = ["a", "a.b", "a.*", "*", "a.b*", "*.b", "a*c", "b.c"];
const POOLS: [&str; 4] = ["p", "q", "r", "s"];

fn check_loading(text: &str) {
    match Pools::load("pools.yaml", text) {
        Ok(pools) => {
            let key = lane("acme", Shape::of("job.echo"));
            assert_eq!(pools.route(&key.shape).is_ok(), pools.mapped(&key.shape).is_some());
            assert!(pools.limits(&key).iter().all(|limit| limit.max.is_some() || limit.rate.is_some()));
        }
        Err(errors) => {
            assert!(!errors.is_empty());
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
            assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)), "{errors:?}");
        }
    }
}

/// Patterns in the order of the file, each with its pools in the order of choice.
type Mapping = Vec<(&'static str, Vec<&'static str>)>;

fn mapping() -> impl Strategy<Value = Mapping> {
    let choices = || prop::sample::subsequence(POOLS.to_vec(), 1..=4).prop_shuffle();
    let patterns = prop::sample::subsequence(PATTERNS.to_vec(), 1..=8).prop_shuffle();
    patterns.prop_flat_map(move |patterns| {
        let choices = prop::collection::vec(choices(), patterns.len());
        choices.prop_map(move |choices| patterns.iter().copied().zip(choices).collect())
    })
}

fn file(mapping: &Mapping) -> String {
    let declared: BTreeSet<&str> = mapping.iter().flat_map(|(_, pools)| pools.iter().copied()).collect();
    let topics = mapping.iter().map(|(pattern, pools)| format!("  '{pattern}': [{}]\n", pools.join(", ")));
    let pools = declared.iter().map(|pool| format!("  {pool}: {{}}\n"));
    ["topics:\n".to_owned()].into_iter().chain(topics).chain(["pools:\n".to_owned()]).chain(pools).collect()
}

/// The rule as the documentation states it, by comparing every pattern with every other.
fn expected<'a>(mapping: &'a Mapping, topic: &str) -> Option<&'a [&'static str]> {
    let rank = |pattern: &str| (!pattern.contains('*'), pattern.chars().filter(|c| *c != '*').count());
    let matching = mapping.iter().filter(|(pattern, _)| Glob::parse(pattern).is_ok_and(|glob| glob.matches(topic)));
    // `max_by_key` takes the last of equals, the file's order wants the first.
    matching.rev().max_by_key(|(pattern, _)| rank(pattern)).map(|(_, pools)| &pools[..])
}

fn shape() -> impl Strategy<Value = Shape> {
    let pool = prop::sample::select(&POOLS[..]);
    let allowed = prop::collection::btree_set(pool.clone().prop_map(Arc::<str>::from), 0..4);
    ("[abc]([.][abc]){0,2}", prop::option::of(pool), prop::option::of(allowed)).prop_map(
        |(topic, preferred, allowed_pools)| Shape {
            preferred_pool: preferred.map(PoolName::from),
            allowed_pools,
            ..Shape::of(topic)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_loads_or_is_refused(text in "\\PC{0,200}|[ -~\\n\\r\\t]{0,200}") {
        check_loading(&text);
    }

    #[test]
    fn anything_like_pools_loads_or_is_refused(parts in prop::collection::vec(prop::sample::select(WORDS), 0..40)) {
        let text = parts.concat();
        check_loading(&text);
        check_loading(&format!("topics: {{job.echo: echo}}\npools:\n  echo: {{}}\n{text}"));
    }

    #[test]
    fn a_route_is_what_the_file_says_less_what_job_and_policy_exclude(mapping in mapping(), shape in shape()) {
        let pools = load(&file(&mapping));
        let mapped = expected(&mapping, shape.topic.as_str());
        prop_assert_eq!(led_to(&pools, shape.topic.as_str()), mapped.unwrap_or_default());
        let preferred = |pool: &str| shape.preferred_pool.as_ref().is_none_or(|only| only.as_str() == pool);
        let allowed = |pool: &str| shape.allowed_pools.as_ref().is_none_or(|pools| pools.contains(pool));
        match pools.route(&shape) {
            Ok(route) => {
                let kept = mapped.unwrap_or_default().iter().copied().filter(|pool| preferred(pool) && allowed(pool));
                let found: Vec<&str> = route.pools().iter().map(PoolName::as_str).collect();
                prop_assert_eq!(&found, &kept.collect::<Vec<_>>());
                prop_assert_eq!(route.first().as_str(), found[0]);
            }
            Err(Unrouted::NoMapping) => prop_assert_eq!(mapped, None),
            Err(Unrouted::PreferredPool) => prop_assert!(!mapped.unwrap_or_default().iter().any(|pool| preferred(pool))),
            Err(Unrouted::AllowedPools) => {
                let mapped = mapped.unwrap_or_default();
                prop_assert!(mapped.iter().any(|pool| preferred(pool)));
                prop_assert!(!mapped.iter().any(|pool| preferred(pool) && allowed(pool)));
            }
        }
    }

    #[test]
    fn every_pool_of_a_route_is_known(mapping in mapping(), shape in shape()) {
        let pools = load(&file(&mapping));
        if let Ok(route) = pools.route(&shape) {
            prop_assert!(route.pools().iter().all(|name| pools.pool(name).is_some_and(|pool| pool.name == *name)));
        }
    }
}

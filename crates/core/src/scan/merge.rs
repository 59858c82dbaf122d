//! Merges the matches of several views into one ordered, bounded report.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::decode::View;
use super::engine::{AfterMatch, BuiltinRules, RuleId};
use super::finding::{Finding, FindingKey, FindingKind, ScanReport};
use super::select::Selection;

const PER_RULE_MAX: usize = 32;
const IN_ALL_MAX: usize = 256;

/// One match, by its raw bytes.
struct Match {
    span: Range<usize>,
    kind: FindingKind,
    loose: bool,
    rule: RuleId,
    hash: String,
}

/// Collects a bounded number of matches.
pub(super) struct MatchCollector<'a> {
    key: &'a FindingKey,
    /// Matches per rule in the current view: a secret that is visible in two views must not count twice.
    in_view: BTreeMap<RuleId, usize>,
    /// The hash of each match, from the first view that shows it; a more decoded view of the same bytes replaces it.
    found: BTreeMap<(RuleId, usize, usize), String>,
    truncated: bool,
}

impl<'a> MatchCollector<'a> {
    pub(super) fn new(key: &'a FindingKey) -> Self {
        Self { key, in_view: BTreeMap::new(), found: BTreeMap::new(), truncated: false }
    }

    pub(super) fn begin_view(&mut self) {
        self.in_view.clear();
    }

    pub(super) fn take(&mut self, rule: RuleId, view: &View<'_>, span: Range<usize>) -> AfterMatch {
        let count = self.in_view.entry(rule).or_default();
        if *count == PER_RULE_MAX {
            self.truncated = true;
            return AfterMatch::Enough;
        }
        *count += 1;
        let hash = self.key.hash(&view.text()[span.clone()]);
        let raw = view.raw(span);
        self.forget_torn(rule, &raw);
        self.found.insert((rule, raw.start, raw.end), hash);
        AfterMatch::Go
    }

    /// A match in the raw text may start inside an escape: `nann@…` where the text has `\nann@…`. The match of the decoded
    /// view shows its real start, so the torn one is dropped.
    fn forget_torn(&mut self, rule: RuleId, raw: &Range<usize>) {
        let longer =
            self.found.range((rule, 0, 0)..(rule, raw.start, 0)).map(|(place, _)| *place).find(|place| place.2 == raw.end);
        if let Some(place) = longer {
            self.found.remove(&place);
        }
    }

    pub(super) fn report(self, builtin: &BuiltinRules, selection: &Selection) -> ScanReport {
        let rules: Vec<_> = builtin.rules().collect();
        let describe = |rule| match rule {
            RuleId::Builtin(index) => (rules[index].kind, rules[index].loose),
            RuleId::User(_) => (FindingKind::Pattern, false),
        };
        let matches = self.found.into_iter().map(|((rule, start, end), hash)| {
            let (kind, loose) = describe(rule);
            Match { span: start..end, kind, loose, rule, hash }
        });
        let name = |rule| match rule {
            RuleId::Builtin(index) => Arc::clone(&rules[index].name),
            RuleId::User(index) => Arc::clone(&selection.user.rule(index).name),
        };
        let mut kept = Vec::new();
        let mut per_rule = BTreeMap::<RuleId, usize>::new();
        let mut truncated = self.truncated;
        for found in resolve(matches.collect()) {
            let count = per_rule.entry(found.rule).or_default();
            *count += 1;
            if *count > PER_RULE_MAX || kept.len() == IN_ALL_MAX {
                truncated = true;
                continue;
            }
            let Match { span, kind, rule, hash, .. } = found;
            kept.push(Finding { kind, rule: name(rule), offset: span.start, length: span.len(), hash });
        }
        ScanReport { findings: kept, truncated }
    }
}

/// Joins overlapping matches of one kind; the better rule names the joined span. User patterns are joined only with
/// themselves, because each was selected by name.
fn resolve(mut matches: Vec<Match>) -> Vec<Match> {
    let class = |m: &Match| (m.kind, (m.kind == FindingKind::Pattern).then_some(m.rule));
    matches.sort_by_key(|m| (class(m), m.span.start, m.span.end));
    let mut joined: Vec<Match> = Vec::new();
    for next in matches {
        match joined.last_mut().filter(|last| class(last) == class(&next) && next.span.start < last.span.end) {
            None => joined.push(next),
            Some(last) => {
                let span = last.span.start..last.span.end.max(next.span.end);
                if rank(&next) < rank(last) {
                    *last = next;
                }
                last.span = span;
            }
        }
    }
    joined.sort_by_key(|m| (m.span.start, m.kind, m.rule));
    joined
}

/// Strict before loose, long before short, then the order of the tables.
fn rank(m: &Match) -> (bool, std::cmp::Reverse<usize>, RuleId) {
    (m.loose, std::cmp::Reverse(m.span.len()), m.rule)
}

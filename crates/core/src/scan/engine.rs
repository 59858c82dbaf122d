//! Scans a text in one pass: keywords trigger probes, and a probe confirms or rejects a match.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use regex::Regex;

use super::checks;
use super::finding::FindingKind;
use super::rules::{self, Find, Probe};
use super::select::Selection;

/// A rule, by its position in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RuleId {
    Builtin(usize),
    User(usize),
}

/// How the scan continues after a match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterMatch {
    Go,
    /// Report no further match of this rule.
    Enough,
    Stop,
}

pub(super) type Sink<'a> = &'a mut dyn FnMut(RuleId, Range<usize>) -> AfterMatch;

pub(super) struct ScanRule {
    pub(super) name: Arc<str>,
    pub(super) kind: FindingKind,
    /// A loose rule yields to a strict one that found the same bytes.
    pub(super) loose: bool,
}

struct CompiledProbe {
    probe: &'static Probe,
    rule: usize,
    /// Anchored at its start; None for probes written in code.
    regex: Option<Regex>,
}

/// The compiled built-in rules.
pub(super) struct BuiltinRules {
    rules: Vec<ScanRule>,
    probes: Vec<CompiledProbe>,
    keywords: AhoCorasick,
    /// The probes that each keyword triggers.
    wakes: Vec<Vec<usize>>,
    /// Rules that search runs of bytes instead of keywords, each with its position in `rules`.
    numbers: Vec<(usize, &'static rules::Numbers)>,
}

impl BuiltinRules {
    /// The tables are part of the program: a fault in one fails every test that scans.
    pub(super) fn compile() -> Self {
        let mut rules: Vec<ScanRule> = Vec::new();
        let mut probes = Vec::new();
        for probe in rules::probes() {
            let rule = rule_index(&mut rules, probe.rule, probe.kind, probe.loose);
            probes.push(CompiledProbe { probe, rule, regex: pattern(probe.find).map(|pattern| anchored(&pattern)) });
        }
        let numbers = rules::NUMBERS.iter().map(|n| (rule_index(&mut rules, n.rule, FindingKind::Pii, false), n)).collect();
        let (words, wakes) = keyword_table(&probes);
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words)
            .expect("the built-in keywords fit an automaton");
        Self { rules, probes, keywords, wakes, numbers }
    }

    pub(super) fn rules(&self) -> std::slice::Iter<'_, ScanRule> {
        self.rules.iter()
    }

    pub(super) fn rule(&self, name: &str) -> Option<usize> {
        self.rules.iter().position(|rule| &*rule.name == name)
    }
}

/// The regex of a probe, written out.
fn pattern(find: Find) -> Option<String> {
    match find {
        Find::Regex(pattern) => Some(pattern.to_owned()),
        Find::Phrase(phrase) => Some(format!("(?i:{})", phrase.replace(' ', r"\s{1,4}"))),
        Find::Named { name, value } => {
            let assigned = r#"[a-z0-9_.\- ]{0,24}["']?\s{0,4}(?:=>|[:=])\s{0,4}["']?"#;
            Some(format!("(?i:(?:{name}){assigned})({value})"))
        }
        Find::Code(_) => None,
    }
}

fn anchored(pattern: &str) -> Regex {
    Regex::new(&format!(r"\A(?:{pattern})")).expect("a built-in pattern compiles")
}

fn rule_index(rules: &mut Vec<ScanRule>, name: &str, kind: FindingKind, loose: bool) -> usize {
    rules.iter().position(|rule| &*rule.name == name).unwrap_or_else(|| {
        rules.push(ScanRule { name: name.into(), kind, loose });
        rules.len() - 1
    })
}

fn keyword_table(probes: &[CompiledProbe]) -> (Vec<&'static str>, Vec<Vec<usize>>) {
    let mut table = std::collections::BTreeMap::<&str, Vec<usize>>::new();
    for (index, compiled) in probes.iter().enumerate() {
        for keyword in compiled.probe.keywords {
            table.entry(keyword).or_default().push(index);
        }
    }
    table.into_iter().unzip()
}

impl CompiledProbe {
    /// The span of a match whose keyword is at `at`.
    fn find(&self, text: &str, at: usize) -> Option<Range<usize>> {
        let span = match (&self.regex, self.probe.find) {
            (Some(regex), _) => {
                let start = (self.probe.lead)(text.as_bytes(), at)?;
                let tail = text.get(start..)?;
                // A search with groups costs several times as much as one without, and most patterns have none.
                let found = if regex.captures_len() == 1 { regex.find(tail)? } else { regex.captures(tail)?.get(1)? };
                start + found.start()..start + found.end()
            }
            (None, Find::Code(code)) => code(text, at)?,
            (None, _) => return None,
        };
        let closed = !self.probe.closed || !checks::is_word(text.as_bytes().get(span.end));
        (closed && (self.probe.check)(&text[span.clone()])).then_some(span)
    }
}

/// Passes every match of the selected rules to `sink`, in no particular order.
pub(super) fn walk(builtin: &BuiltinRules, selection: &Selection, text: &str, sink: Sink<'_>) -> ControlFlow<()> {
    if selection.any_builtin() {
        walk_keywords(builtin, selection, text, sink)?;
        walk_numbers(builtin, selection, text, sink)?;
    }
    if selection.any_user() { walk_user(selection, text, sink) } else { ControlFlow::Continue(()) }
}

fn walk_keywords(builtin: &BuiltinRules, selection: &Selection, text: &str, sink: Sink<'_>) -> ControlFlow<()> {
    // A probe resumes after its last match. Unselected and finished probes have `usize::MAX` and never resume.
    let asleep = |p: &CompiledProbe| if selection.has(RuleId::Builtin(p.rule)) { 0 } else { usize::MAX };
    let mut resume: Vec<usize> = builtin.probes.iter().map(asleep).collect();
    for hit in builtin.keywords.find_overlapping_iter(text) {
        for &index in &builtin.wakes[hit.pattern().as_usize()] {
            if hit.start() < resume[index] {
                continue;
            }
            let compiled = &builtin.probes[index];
            let Some(span) = compiled.find(text, hit.start()) else { continue };
            resume[index] = span.end;
            match sink(RuleId::Builtin(compiled.rule), span) {
                AfterMatch::Go => {}
                AfterMatch::Enough => resume[index] = usize::MAX,
                AfterMatch::Stop => return ControlFlow::Break(()),
            }
        }
    }
    ControlFlow::Continue(())
}

fn walk_numbers(builtin: &BuiltinRules, selection: &Selection, text: &str, sink: Sink<'_>) -> ControlFlow<()> {
    for (rule, numbers) in &builtin.numbers {
        if !selection.has(RuleId::Builtin(*rule)) {
            continue;
        }
        let mut spans = rules::number_spans(numbers, text);
        if let ControlFlow::Break(AfterMatch::Stop) = feed(RuleId::Builtin(*rule), &mut spans, sink) {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

fn walk_user(selection: &Selection, text: &str, sink: Sink<'_>) -> ControlFlow<()> {
    for index in selection.user.awake(text).filter(|index| selection.has(RuleId::User(*index))) {
        let mut spans = selection.user.rule(index).regex.find_iter(text).map(|found| found.range());
        if let ControlFlow::Break(AfterMatch::Stop) = feed(RuleId::User(index), &mut spans, sink) {
            return ControlFlow::Break(());
        }
    }
    ControlFlow::Continue(())
}

/// Breaks with the answer of the sink that ended the scan.
fn feed(rule: RuleId, spans: &mut dyn Iterator<Item = Range<usize>>, sink: Sink<'_>) -> ControlFlow<AfterMatch> {
    for span in spans {
        match sink(rule, span) {
            AfterMatch::Go => {}
            end => return ControlFlow::Break(end),
        }
    }
    ControlFlow::Continue(())
}

//! Values by topic pattern: of the patterns that match a topic, one decides.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::error::ConfigReport;
use super::read;
use super::yaml::{YamlEntry, YamlNode};
use crate::glob::Glob;

/// Values by topic pattern. An exact name beats every glob; among globs the one with the most literal text wins, then the
/// first in the file. Values are never merged, so that one line of a file decides for a topic.
#[derive(Clone, Debug)]
pub(crate) struct TopicMap<T> {
    exact: BTreeMap<Box<str>, T>,
    /// In the order in which they are tried.
    globs: Vec<Pattern<T>>,
}

#[derive(Clone, Debug)]
struct Pattern<T> {
    text: Box<str>,
    glob: Glob,
    value: T,
}

impl<T> TopicMap<T> {
    /// Reads a map of patterns, at least one; `value` reads the value of each.
    pub(crate) fn read<'a>(
        node: &'a YamlNode,
        name: &str,
        report: &mut ConfigReport,
        mut value: impl FnMut(&'a YamlEntry, &mut ConfigReport) -> Option<T>,
    ) -> Option<Self> {
        let entries = read::some_entries(node, name, report)?;
        let mut read = |entry: &'a YamlEntry| {
            let glob = read::glob(&entry.key, entry.at, name, report);
            let value = value(entry, report);
            Some((glob?, value?))
        };
        Some(entries.iter().filter_map(&mut read).collect())
    }

    pub(crate) fn get(&self, topic: &str) -> Option<&T> {
        let by_glob = || self.globs.iter().find(|pattern| pattern.glob.matches(topic)).map(|pattern| &pattern.value);
        self.exact.get(topic).or_else(by_glob)
    }

    /// Every pattern as written: exact names in order, then globs in the order in which they are tried.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        let exact = self.exact.iter().map(|(name, value)| (&**name, value));
        exact.chain(self.globs.iter().map(|pattern| (&*pattern.text, &pattern.value)))
    }
}

impl<T> Default for TopicMap<T> {
    /// A map that matches no topic.
    fn default() -> Self {
        Self { exact: BTreeMap::new(), globs: Vec::new() }
    }
}

impl<T> FromIterator<(Glob, T)> for TopicMap<T> {
    fn from_iter<I: IntoIterator<Item = (Glob, T)>>(patterns: I) -> Self {
        let mut map = Self::default();
        for (glob, value) in patterns {
            match glob {
                Glob::Exact(name) => drop(map.exact.insert(name, value)),
                glob => map.globs.push(Pattern { text: text(&glob).into(), glob, value }),
            }
        }
        // The sort is stable: among equals the order of the file stays.
        map.globs.sort_by_key(|pattern| Reverse(pattern.text.bytes().filter(|byte| *byte != b'*').count()));
        map
    }
}

fn text(glob: &Glob) -> String {
    match glob {
        Glob::Exact(text) => text.to_string(),
        Glob::Prefix(prefix) => format!("{prefix}*"),
        Glob::Pieces(pieces) => pieces.join("*"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn winner(patterns: &[&'static str], topic: &str) -> Option<&'static str> {
        let map: TopicMap<&str> = patterns.iter().map(|text| (Glob::parse(text).unwrap(), *text)).collect();
        map.get(topic).copied()
    }

    #[test]
    fn an_exact_name_then_the_most_literal_text_then_the_first_line_decides() {
        for (patterns, topic, expected) in [
            (["*", "job.repo.*", "job.*"], "job.repo.scan", Some("job.repo.*")),
            (["job.repo.sca*", "job.r", "job.repo.scan"], "job.repo.scan", Some("job.repo.scan")),
            (["job.*", "*.scan.fast", "*"], "job.scan.fast", Some("*.scan.fast")),
            (["a*c", "ab*", "*bc"], "abc", Some("a*c")),
            (["ab*", "a*c", "*bc"], "abc", Some("ab*")),
            (["a.*", "a.b.*", "*.z"], "x", None),
        ] {
            assert_eq!(winner(&patterns, topic), expected, "{patterns:?} {topic}");
        }
    }

    #[test]
    fn patterns_are_listed_as_they_were_written() {
        let written = ["job.b", "*", "a*c*", "*.x", "job.*", "job.a"];
        let map: TopicMap<()> = written.iter().map(|text| (Glob::parse(text).unwrap(), ())).collect();
        let listed: Vec<&str> = map.iter().map(|(pattern, ())| pattern).collect();
        assert_eq!(listed, ["job.a", "job.b", "job.*", "a*c*", "*.x", "*"]);
    }
}

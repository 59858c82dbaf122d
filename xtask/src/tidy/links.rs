//! Links between pages: each leads to a file, folder or heading that is there, and the site's table of contents has every page.

use std::collections::{BTreeMap, BTreeSet};

use super::{Severity, TidyFinding};

const CONTENTS: &str = "docs/SUMMARY.md";

/// Path → content.
type Texts = BTreeMap<String, String>;

pub(crate) fn check(texts: &Texts) -> Vec<TidyFinding> {
    let pages = texts.iter().filter(|(path, _)| path.ends_with(".md"));
    let mut found: Vec<TidyFinding> = pages.flat_map(|(path, text)| broken(path, text, texts)).collect();
    found.extend(missing_from_contents(texts));
    found
}

fn broken(path: &str, text: &str, texts: &Texts) -> Vec<TidyFinding> {
    let links = links(text).into_iter().filter(|(_, target)| !target.contains("://") && !target.starts_with("mailto:"));
    links
        .filter(|(_, target)| !leads_somewhere(path, target, texts))
        .map(|(line, target)| TidyFinding::at(Severity::Refuse, path, line, format!("the link {target} leads nowhere")))
        .collect()
}

fn leads_somewhere(from: &str, target: &str, texts: &Texts) -> bool {
    let (file, heading) = target.split_once('#').map_or((target, None), |(file, heading)| (file, Some(heading)));
    let Some(path) = (if file.is_empty() { Some(from.to_owned()) } else { resolved(from, file) }) else { return false };
    let folder = format!("{path}/");
    match (texts.get(&path), heading) {
        (Some(text), Some(heading)) => headings(text).contains(heading),
        (Some(_), None) => true,
        (None, heading) => heading.is_none() && texts.keys().any(|other| other.starts_with(&folder)),
    }
}

/// A path of the repository, or nothing if the link leaves it.
fn resolved(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The targets of links, each with its line. Code has no links.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (at, line) in prose(text) {
        let parts = line.split('`').step_by(2);
        let targets = parts.flat_map(|part| part.split("](").skip(1).filter_map(|rest| rest.split_once(')')));
        found.extend(targets.map(|(target, _)| (at, target)));
    }
    found
}

/// The anchors that a page's headings get.
fn headings(text: &str) -> BTreeSet<String> {
    let titles = prose(text).into_iter().filter(|(_, line)| line.starts_with('#'));
    titles.map(|(_, line)| anchor(line.trim_start_matches('#').trim())).collect()
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((at, line));
        }
    }
    lines
}

fn missing_from_contents(texts: &Texts) -> Vec<TidyFinding> {
    let Some(contents) = texts.get(CONTENTS) else { return Vec::new() };
    let listed: BTreeSet<String> = links(contents).into_iter().filter_map(|(_, link)| resolved(CONTENTS, link)).collect();
    let pages = texts.keys().filter(|path| path.starts_with("docs/") && path.ends_with(".md"));
    pages
        .filter(|path| *path != CONTENTS && !listed.contains(*path))
        .map(|path| TidyFinding::of_file(Severity::Refuse, path, format!("not in {CONTENTS}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(pages: &[(&str, &str)]) -> Vec<String> {
        let texts: Texts = pages.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        check(&texts).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_link_to_a_file_folder_or_heading_that_is_not_there_is_refused() {
        let there = "[a](docs/a.md) [b](docs) [c](docs/a.md#the-end) [d](https://example.org) `[x](y)`\n```\n[x](y)\n```\n";
        assert_eq!(refused(&[("README.md", there), ("docs/a.md", "## The end\n")]), Vec::<String>::new());
        for gone in ["docs/b.md", "dogs", "docs/a.md#the-start", "../../other"] {
            let page = format!("text\n[a]({gone})\n");
            let found = refused(&[("README.md", &page), ("docs/a.md", "## The end\n")]);
            assert_eq!(found, [format!("error: README.md:2: the link {gone} leads nowhere")]);
        }
    }

    #[test]
    fn a_page_that_the_contents_lack_is_refused() {
        let pages = [("docs/SUMMARY.md", "[A](a.md)"), ("docs/a.md", "# A"), ("docs/adr/1.md", "# One")];
        assert_eq!(refused(&pages), ["error: docs/adr/1.md: not in docs/SUMMARY.md"]);
    }
}

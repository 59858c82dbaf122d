//! Source text split into what is code, what is comment and what is only a literal.

use std::collections::BTreeSet;
use std::ops::Range;

/// One Rust file. `code` and `comments` have the lines of `text`, with everything else blanked out.
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
    pub(crate) code: String,
    pub(crate) comments: String,
    /// The whole file is compiled for tests only.
    pub(crate) test_file: bool,
    /// Lines of inline test modules, counted from 0.
    test_lines: Vec<Range<usize>>,
}

impl Source {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        let (path, text) = (path.into(), text.into());
        let (code, comments) = split(&text);
        let test_lines = inline_test_modules(&code);
        let test_file = is_test_path(&path);
        Self { path, text, code, comments, test_file, test_lines }
    }

    /// Whether a line, counted from 0, belongs to tests.
    pub(crate) fn is_test(&self, line: usize) -> bool {
        self.test_file || self.test_lines.iter().any(|lines| lines.contains(&line))
    }

    pub(crate) fn line_count(&self) -> usize {
        self.text.lines().count()
    }

    /// Names of modules declared as `#[cfg(test)] mod name;`.
    pub(crate) fn outlined_test_modules(&self) -> BTreeSet<String> {
        let lines: Vec<&str> = self.code.lines().map(str::trim).collect();
        lines
            .windows(2)
            .filter(|pair| is_cfg_test(pair[0]))
            .filter_map(|pair| module_name(pair[1])?.strip_suffix(';').map(str::to_owned))
            .collect()
    }
}

fn is_test_path(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "tests" | "benches" | "conformance" | "tests.rs" | "conformance.rs"))
}

fn is_cfg_test(line: &str) -> bool {
    line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test")
}

fn module_name(line: &str) -> Option<&str> {
    line.strip_prefix("pub(crate) ").unwrap_or(line).strip_prefix("mod ")
}

fn inline_test_modules(code: &str) -> Vec<Range<usize>> {
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, pair) in lines.windows(2).enumerate() {
        if is_cfg_test(pair[0].trim()) && module_name(pair[1].trim()).is_some_and(|rest| rest.ends_with('{')) {
            found.push(at..closing_line(&lines, at + 1) + 1);
        }
    }
    found
}

/// The line where the first block that opens at or after `from` is closed.
pub(crate) fn closing_line(lines: &[&str], from: usize) -> usize {
    let mut depth = 0_usize;
    for (at, line) in lines.iter().enumerate().skip(from) {
        for c in line.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => return at,
                '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
    }
    lines.len().saturating_sub(1)
}

#[derive(Clone, Copy, PartialEq)]
enum Inside {
    Code,
    LineComment,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

fn split(text: &str) -> (String, String) {
    let chars: Vec<char> = text.chars().collect();
    let (mut code, mut comments) = (String::with_capacity(text.len()), String::with_capacity(text.len()));
    let (mut inside, mut at) = (Inside::Code, 0);
    while at < chars.len() {
        let (next, width) = step(inside, &chars, at);
        let commented = is_comment(inside) || is_comment(next);
        for c in &chars[at..chars.len().min(at + width)] {
            let blank = if *c == '\n' { '\n' } else { ' ' };
            code.push(if inside == Inside::Code && next == Inside::Code && !is_literal(&chars, at) { *c } else { blank });
            comments.push(if commented { *c } else { blank });
        }
        inside = next;
        at += width;
    }
    (code, comments)
}

fn is_comment(inside: Inside) -> bool {
    matches!(inside, Inside::LineComment | Inside::BlockComment { .. })
}

fn is_literal(chars: &[char], at: usize) -> bool {
    chars[at] == '\'' && char_literal_width(chars, at).is_some()
}

/// What follows after the characters at `at`, and how many of them belong together.
fn step(inside: Inside, chars: &[char], at: usize) -> (Inside, usize) {
    let here = chars[at];
    let after = chars.get(at + 1).copied();
    match inside {
        Inside::Code => step_in_code(chars, at),
        Inside::LineComment if here == '\n' => (Inside::Code, 1),
        Inside::BlockComment { depth } => match (here, after) {
            ('*', Some('/')) if depth == 1 => (Inside::Code, 2),
            ('*', Some('/')) => (Inside::BlockComment { depth: depth - 1 }, 2),
            ('/', Some('*')) => (Inside::BlockComment { depth: depth + 1 }, 2),
            _ => (inside, 1),
        },
        Inside::Text if here == '\\' => (inside, 2),
        Inside::Text if here == '"' => (Inside::Code, 1),
        Inside::RawText { hashes } if here == '"' && count_hashes(chars, at + 1) >= hashes => (Inside::Code, 1 + hashes),
        Inside::LineComment | Inside::Text | Inside::RawText { .. } => (inside, 1),
    }
}

fn step_in_code(chars: &[char], at: usize) -> (Inside, usize) {
    match (chars[at], chars.get(at + 1)) {
        ('/', Some('/')) => (Inside::LineComment, 2),
        ('/', Some('*')) => (Inside::BlockComment { depth: 1 }, 2),
        ('"', _) => (Inside::Text, 1),
        ('r', _) if !continues_a_name(chars, at) => {
            let hashes = count_hashes(chars, at + 1);
            let raw = chars.get(at + 1 + hashes) == Some(&'"');
            if raw { (Inside::RawText { hashes }, 2 + hashes) } else { (Inside::Code, 1) }
        }
        ('\'', _) => (Inside::Code, char_literal_width(chars, at).unwrap_or(1)),
        _ => (Inside::Code, 1),
    }
}

/// `br"…"` and `cr"…"` are raw texts too, so those letters before an `r` do not count.
fn continues_a_name(chars: &[char], at: usize) -> bool {
    let name = |c: &char| c.is_alphanumeric() || *c == '_';
    let before = at.checked_sub(1).map(|i| chars[i]);
    match before {
        Some('b' | 'c') => at.checked_sub(2).is_some_and(|i| name(&chars[i])),
        Some(c) => name(&c),
        None => false,
    }
}

fn count_hashes(chars: &[char], from: usize) -> usize {
    chars[from.min(chars.len())..].iter().take_while(|c| **c == '#').count()
}

/// None for a lifetime.
fn char_literal_width(chars: &[char], at: usize) -> Option<usize> {
    if chars.get(at + 1) == Some(&'\\') {
        let close = chars[at + 3..].iter().position(|c| *c == '\'')?;
        return Some(close + 4);
    }
    (chars.get(at + 2) == Some(&'\'')).then_some(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_comments_are_not_code() {
        let source = Source::new("a.rs", "let a = \"{ // no\"; // { yes\nlet b = '{'; let c: &'static str = r#\"}\"#;");
        assert!(!source.code.contains('{') && !source.code.contains('}'));
        assert!(source.code.contains("&'static str"));
        assert_eq!(source.comments.trim(), "// { yes");
    }

    #[test]
    fn nested_block_comments_end_where_they_should() {
        let source = Source::new("a.rs", "/* a /* b */ c */ fn x() {}");
        assert_eq!(source.code.trim(), "fn x() {}");
    }

    #[test]
    fn escaped_quotes_do_not_end_a_text() {
        let source = Source::new("a.rs", r#"let a = "\"{"; let b = '\''; let c = b"{"; fn d() {}"#);
        assert_eq!(source.code.matches('{').count(), 1);
    }

    #[test]
    fn inline_test_modules_are_known_by_line() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
        let source = Source::new("src/a.rs", text);
        let tests: Vec<bool> = (0..6).map(|line| source.is_test(line)).collect();
        assert_eq!(tests, [false, true, true, true, true, false]);
    }

    #[test]
    fn files_in_test_folders_are_tests() {
        assert!(Source::new("crates/a/tests/b.rs", "fn a() {}").is_test(0));
        assert!(!Source::new("crates/a/src/b.rs", "fn a() {}").is_test(0));
    }

    #[test]
    fn outlined_test_modules_are_named() {
        let source = Source::new("a.rs", "#[cfg(test)]\nmod properties;\nmod other;\n");
        assert_eq!(source.outlined_test_modules(), BTreeSet::from(["properties".to_owned()]));
    }
}

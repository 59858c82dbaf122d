//! Where functions begin and end. Good enough for code that rustfmt has laid out.

use super::source::{Source, closing_line};

pub(crate) struct Function {
    pub(crate) name: String,
    /// Counted from 0.
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Function {
    pub(crate) fn lines(&self) -> usize {
        self.last - self.first + 1
    }
}

/// Every function with a body, nested ones too.
pub(crate) fn functions(source: &Source) -> Vec<Function> {
    let lines: Vec<&str> = source.code.lines().collect();
    let mut found = Vec::new();
    for (first, line) in lines.iter().enumerate() {
        if let Some(name) = declared_name(line)
            && has_body(&lines, first)
        {
            found.push(Function { name: name.to_owned(), first, last: closing_line(&lines, first) });
        }
    }
    found
}

fn declared_name(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| is_qualifier(word));
    if words.next() != Some("fn") {
        return None;
    }
    let name = words.next()?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    (end > 0).then_some(&name[..end])
}

fn is_qualifier(word: &str) -> bool {
    matches!(word, "pub" | "const" | "async" | "extern" | "default" | "unsafe") || word.starts_with("pub(")
}

/// A declaration in a trait ends with `;` before any `{`; array types have theirs inside brackets.
fn has_body(lines: &[&str], first: usize) -> bool {
    let mut brackets = 0_i32;
    for c in lines[first..].iter().flat_map(|line| line.chars()) {
        match c {
            '[' | '(' => brackets += 1,
            ']' | ')' => brackets -= 1,
            ';' if brackets == 0 => return false,
            '{' => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_spans_from_its_name_to_its_closing_brace() {
        let text =
            "impl A {\n    pub(crate) async fn a(\n        &self,\n    ) -> [u8; 2] {\n        if x { y }\n    }\n}\n";
        let found = functions(&Source::new("a.rs", text));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].first, found[0].lines()), ("a", 1, 5));
    }

    #[test]
    fn declarations_and_function_types_are_not_functions() {
        let text = "trait A {\n    fn a(&self);\n}\ntype F = fn(u8) -> u8;\nlet x = fn_like(2);\n";
        assert!(functions(&Source::new("a.rs", text)).is_empty());
    }

    #[test]
    fn nested_functions_count_too() {
        let found = functions(&Source::new("a.rs", "fn a() {\n    fn b() {\n    }\n}\n"));
        assert_eq!(found.iter().map(Function::lines).collect::<Vec<_>>(), [4, 2]);
    }
}

//! Finds at load what would fail at every evaluation: unknown names, functions and patterns.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, SelectExpr};
use regex::RegexBuilder;

use super::facts::JOB_FIELDS;
use super::when::{Regexes, literal};
use crate::config::{Place, Report};

/// Loops inside of loops: each level multiplies by the length of a list that the submitter may choose.
const LOOPS_MAX: usize = 2;
const REGEX_BYTES_MAX: usize = 1 << 20;

const VARIABLES: [&str; 3] = ["job", "payload", "now"];
/// Names that stand for types, and the namespace of optional values.
const TYPES: [&str; 11] =
    ["bool", "bytes", "double", "dyn", "int", "list", "map", "null_type", "string", "uint", "optional"];
const FUNCTIONS: [&str; 20] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "string",
    "type",
    "uint",
    "of",
    "none",
    "ofNonZeroValue",
    "hasValue",
    "value",
    "or",
    "orValue",
];

/// Whether the expression uses the payload; `None` if it was refused.
pub(super) fn check(expression: &IdedExpr, at: Place, regexes: &mut Regexes, report: &mut Report) -> Option<bool> {
    let mut walk = Walk { at, regexes, report, bound: Vec::new(), loops: 0, uses_payload: false, refused: false };
    walk.expression(expression);
    (!walk.refused).then_some(walk.uses_payload)
}

struct Walk<'a> {
    at: Place,
    regexes: &'a mut Regexes,
    report: &'a mut Report,
    /// Names that surrounding loops bind.
    bound: Vec<String>,
    loops: usize,
    uses_payload: bool,
    refused: bool,
}

impl Walk<'_> {
    fn unknown<'k>(&mut self, message: String, word: &str, known: impl IntoIterator<Item = &'k str>) {
        self.refused = true;
        self.report.unknown(self.at, message, word, known);
    }

    fn refuse(&mut self, message: String) {
        self.refused = true;
        self.report.refuse(self.at, message);
    }

    fn expression(&mut self, expression: &IdedExpr) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.select(select),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => list.elements.iter().for_each(|element| self.expression(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(object) => {
                self.refuse(format!("when cannot make a {:?}; there are no message types", object.type_name));
            }
        }
    }

    fn entry(&mut self, entry: &EntryExpr) {
        match entry {
            EntryExpr::MapEntry(entry) => {
                self.expression(&entry.key);
                self.expression(&entry.value);
            }
            EntryExpr::StructField(field) => self.expression(&field.value),
        }
    }

    fn name(&mut self, name: &str) {
        if self.bound.iter().any(|bound| bound == name) || TYPES.contains(&name) {
            return;
        }
        self.uses_payload |= name == "payload";
        if !VARIABLES.contains(&name) {
            let message = format!("unknown name {name:?} in when; it knows {}", VARIABLES.join(", "));
            self.unknown(message, name, VARIABLES);
        }
    }

    fn select(&mut self, select: &SelectExpr) {
        let on_job = matches!(&select.operand.expr, Expr::Ident(name) if name == "job" && !self.bound.contains(name));
        if on_job && !JOB_FIELDS.contains(&select.field.as_str()) {
            let message = format!("unknown field {:?} of job in when; it has {}", select.field, JOB_FIELDS.join(", "));
            self.unknown(message, &select.field, JOB_FIELDS);
        }
        self.expression(&select.operand);
    }

    fn call(&mut self, call: &CallExpr) {
        let operator = call.func_name.contains(|c: char| !c.is_ascii_alphanumeric());
        if !operator && !FUNCTIONS.contains(&call.func_name.as_str()) {
            let message = format!("unknown function {:?} in when", call.func_name);
            self.unknown(message, &call.func_name, FUNCTIONS);
        }
        if call.func_name == "matches" {
            self.pattern(call.args.last().and_then(literal).map(str::to_owned));
        }
        call.target.iter().for_each(|target| self.expression(target));
        call.args.iter().for_each(|argument| self.expression(argument));
    }

    /// A pattern that is computed would have to be compiled for every job, and its size be trusted.
    fn pattern(&mut self, pattern: Option<String>) {
        let Some(pattern) = pattern else {
            return self.refuse("matches in when needs a pattern written out as text".to_owned());
        };
        if self.regexes.contains_key(&pattern) {
            return;
        }
        match RegexBuilder::new(&pattern).size_limit(REGEX_BYTES_MAX).build() {
            Ok(regex) => drop(self.regexes.insert(pattern, regex)),
            Err(error) => self.refuse(format!("bad regex {pattern:?} in when: {}", last_line(&error.to_string()))),
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) {
        self.loops += 1;
        if self.loops > LOOPS_MAX {
            self.refuse(format!("when has more than {LOOPS_MAX} loops inside of each other"));
        }
        self.expression(&loops.iter_range);
        self.expression(&loops.accu_init);
        let outer = self.bound.len();
        self.bound.push(loops.accu_var.clone());
        self.bound.push(loops.iter_var.clone());
        self.bound.extend(loops.iter_var2.clone());
        for inner in [&loops.loop_cond, &loops.loop_step, &loops.result] {
            self.expression(inner);
        }
        self.bound.truncate(outer);
        self.loops -= 1;
    }
}

/// The last line of a regex error says what is wrong; those before it draw the place.
pub(super) fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line)
}

//! Finds at load what would fail at every evaluation: unknown names, functions and patterns.

use cel::common::ast::{CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, operators};
use regex::RegexBuilder;

use super::{ExpressionFault, Regexes, Wording, literal};

/// The deepest nesting of loops: each level multiplies the cost by the length of a list that the submitter may choose.
const LOOPS_MAX: usize = 2;
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Names of types, and the namespace of optional values.
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

/// The variables that expressions of one kind may use.
pub(crate) trait Vocabulary {
    /// Checks a variable used as a whole.
    fn variable(&mut self, name: &str) -> Result<(), ExpressionFault>;

    /// Checks a literal field of a variable: `variable.field` or `variable["field"]`.
    fn field(&mut self, variable: &str, field: &str) -> Result<(), ExpressionFault>;

    /// Whether a loop may bind the name and thereby hide its other meaning.
    fn may_bind(&self, _name: &str) -> bool {
        true
    }
}

/// Every fault of the expression. Valid patterns are added to `regexes`.
pub(crate) fn check(
    expression: &IdedExpr,
    wording: Wording<'_>,
    regexes: &mut Regexes,
    vocabulary: &mut dyn Vocabulary,
) -> Vec<ExpressionFault> {
    let mut walk = Walk { wording, regexes, vocabulary, bound: Vec::new(), loops: 0, faults: Vec::new() };
    walk.expression(expression);
    walk.faults
}

struct Walk<'a> {
    wording: Wording<'a>,
    regexes: &'a mut Regexes,
    vocabulary: &'a mut dyn Vocabulary,
    /// Names bound by the surrounding loops.
    bound: Vec<String>,
    loops: usize,
    faults: Vec<ExpressionFault>,
}

impl Walk<'_> {
    fn refuse(&mut self, message: String) {
        self.faults.push(ExpressionFault::new(message));
    }

    fn expression(&mut self, expression: &IdedExpr) {
        match &expression.expr {
            Expr::Unspecified | Expr::Literal(_) => {}
            Expr::Ident(name) => self.name(name),
            Expr::Select(select) => self.selection(&select.operand, &select.field),
            Expr::Call(call) => self.call(call),
            Expr::List(list) => list.elements.iter().for_each(|element| self.expression(element)),
            Expr::Map(map) => map.entries.iter().for_each(|entry| self.entry(&entry.expr)),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            Expr::Struct(object) => {
                let name = self.wording.name;
                self.refuse(format!("{name} cannot make a {:?}; there are no message types", object.type_name));
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

    fn is_variable(&self, name: &str) -> bool {
        !TYPES.contains(&name) && !self.bound.iter().any(|bound| bound == name)
    }

    fn name(&mut self, name: &str) {
        if self.is_variable(name) {
            self.faults.extend(self.vocabulary.variable(name).err());
        }
    }

    fn selection(&mut self, operand: &IdedExpr, field: &str) {
        match &operand.expr {
            Expr::Ident(name) if self.is_variable(name) => self.faults.extend(self.vocabulary.field(name, field).err()),
            _ => self.expression(operand),
        }
    }

    fn call(&mut self, call: &CallExpr) {
        if let operators::INDEX | operators::OPT_INDEX | operators::OPT_SELECT = call.func_name.as_str()
            && let [operand, field] = call.args.as_slice()
            && let Some(field) = literal(field)
        {
            return self.selection(operand, field);
        }
        let operator = call.func_name.contains(|c: char| !c.is_ascii_alphanumeric());
        if !operator && !FUNCTIONS.contains(&call.func_name.as_str()) {
            let message = format!("unknown function {:?} in {}", call.func_name, self.wording.name);
            self.faults.push(ExpressionFault::unknown(message, &call.func_name, FUNCTIONS));
        }
        if call.func_name == "matches" {
            self.pattern(call.args.last().and_then(literal).map(str::to_owned));
        }
        call.target.iter().for_each(|target| self.expression(target));
        call.args.iter().for_each(|argument| self.expression(argument));
    }

    /// Refuses a computed pattern: it would have to be compiled for every job, and its size could not be checked.
    fn pattern(&mut self, pattern: Option<String>) {
        let name = self.wording.name;
        let Some(pattern) = pattern else {
            return self.refuse(format!("matches in {name} needs a pattern written out as text"));
        };
        if self.regexes.contains_key(&pattern) {
            return;
        }
        match RegexBuilder::new(&pattern).size_limit(REGEX_BYTES_MAX).build() {
            Ok(regex) => drop(self.regexes.insert(pattern, regex)),
            Err(error) => self.refuse(format!("bad regex {pattern:?} in {name}: {}", last_line(&error.to_string()))),
        }
    }

    fn comprehension(&mut self, loops: &ComprehensionExpr) {
        self.loops += 1;
        let name = self.wording.name;
        if self.loops > LOOPS_MAX {
            self.refuse(format!("{name} has more than {LOOPS_MAX} loops inside of each other"));
        }
        self.expression(&loops.iter_range);
        self.expression(&loops.accu_init);
        let outer = self.bound.len();
        for bound in [&loops.accu_var, &loops.iter_var].into_iter().chain(&loops.iter_var2) {
            if !self.vocabulary.may_bind(bound) {
                self.refuse(format!("{name} uses {bound:?} for what a loop goes over; choose another name"));
            }
            self.bound.push(bound.clone());
        }
        for inner in [&loops.loop_cond, &loops.loop_step, &loops.result] {
            self.expression(inner);
        }
        self.bound.truncate(outer);
        self.loops -= 1;
    }
}

/// The last line of a regex error says what is wrong; the lines before draw the position.
pub(crate) fn last_line(text: &str) -> &str {
    let line = text.lines().last().unwrap_or(text);
    line.strip_prefix("error: ").unwrap_or(line)
}

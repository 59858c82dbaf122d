//! Why a JSON text is refused, with the path to the reason.

use std::fmt;

use super::DEPTH_MAX;
use super::number::NumberFault;
use crate::request::FieldError;

/// The longest key that a path shows whole.
const NAME_CHARS_SHOWN: usize = 64;

/// Why a JSON text is refused.
#[derive(Debug)]
pub struct JsonError {
    /// The path, from the innermost step outwards.
    steps: Vec<JsonStep>,
    flaw: Flaw,
}

#[derive(Debug)]
enum JsonStep {
    Name(String),
    Place(usize),
}

#[derive(Debug)]
pub(super) enum Flaw {
    /// The error of serde_json, with line and column.
    Syntax(String),
    Twice,
    Number(NumberFault),
    Surrogate,
    Depth,
}

impl From<Flaw> for JsonError {
    fn from(flaw: Flaw) -> Self {
        Self { steps: Vec::new(), flaw }
    }
}

impl JsonError {
    /// Adds the key of the value in which the error was found.
    pub(super) fn within_name(mut self, name: &str) -> Self {
        self.steps.push(JsonStep::Name(name.to_owned()));
        self
    }

    /// Adds the position in the list in which the error was found.
    pub(super) fn within_list(mut self, place: usize) -> Self {
        self.steps.push(JsonStep::Place(place));
        self
    }

    /// Whether the text is not JSON at all.
    pub fn is_syntax(&self) -> bool {
        matches!(self.flaw, Flaw::Syntax(_))
    }

    /// The error of the field that contained the text, with the path inside it: `payload.items[2].to`.
    pub fn in_field(&self, field: &str) -> FieldError {
        match &self.flaw {
            Flaw::Syntax(message) => FieldError::new(field, format_args!("must be JSON: {message}")),
            flaw => FieldError::new(format!("{field}{}", JsonPath(&self.steps)), flaw),
        }
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.flaw, self.steps.is_empty()) {
            (Flaw::Syntax(_), _) | (_, true) => write!(f, "{}", self.flaw),
            (flaw, false) => write!(f, "{}: {flaw}", JsonPath(&self.steps).to_string().trim_start_matches('.')),
        }
    }
}

impl std::error::Error for JsonError {}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(message) => f.write_str(message),
            Self::Twice => f.write_str("is given twice; a name may stand once in an object"),
            Self::Number(fault) => write!(f, "{fault}; send it as text"),
            Self::Surrogate => f.write_str("has half of a surrogate pair, which is no character"),
            Self::Depth => write!(f, "is nested deeper than {DEPTH_MAX} levels"),
        }
    }
}

struct JsonPath<'a>(&'a [JsonStep]);

impl fmt::Display for JsonPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().rev().try_for_each(|step| match step {
            JsonStep::Place(place) => write!(f, "[{place}]"),
            JsonStep::Name(name) if is_plain(name) => write!(f, ".{name}"),
            JsonStep::Name(name) if name.chars().count() > NAME_CHARS_SHOWN => {
                write!(f, "[{:?}…]", name.chars().take(NAME_CHARS_SHOWN).collect::<String>())
            }
            JsonStep::Name(name) => write!(f, "[{name:?}]"),
        })
    }
}

fn is_plain(name: &str) -> bool {
    (1..=NAME_CHARS_SHOWN).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
}

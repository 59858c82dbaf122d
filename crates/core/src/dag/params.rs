//! Checks the parameters given to a run against those that its DAG takes.

use serde_json::{Map, Value};

use super::{Dag, Param, ParamKind};
use crate::config::nearest;
use crate::request::FieldError;

impl ParamKind {
    pub const ALL: [Self; 6] = [Self::Text, Self::Number, Self::Truth, Self::List, Self::Map, Self::Any];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Truth => "truth",
            Self::List => "list",
            Self::Map => "map",
            Self::Any => "any",
        }
    }

    /// The expected type, in the words of an error.
    const fn wanted(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "a number",
            Self::Truth => "true or false",
            Self::List => "a list",
            Self::Map => "a map",
            Self::Any => "anything",
        }
    }

    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Truth => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Map => value.is_object(),
            Self::Any => true,
        }
    }

    /// What is wrong with a value; the error text continues after its name.
    pub(super) fn refusal(self, value: &Value) -> Option<String> {
        (!self.takes(value)).then(|| format!("must be {}, not {}", self.wanted(), kind_of(value)))
    }
}

/// The type of a value, in the words of an error.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

impl Dag {
    /// The parameters of a run as a map, with defaults for those not given. `null` gives none.
    pub fn check_params(&self, given: &Value) -> Result<Value, Vec<FieldError>> {
        let none = Map::new();
        let given = match given {
            Value::Object(given) => given,
            Value::Null => &none,
            other => return Err(vec![FieldError::new("params", format!("must be a map, not {}", kind_of(other)))]),
        };
        let known = |name: &str| self.params.iter().any(|param| *param.name == *name);
        let unknown = given.keys().filter(|name| !known(name)).map(|name| self.unknown(name));
        let mut errors: Vec<FieldError> = unknown.collect();
        let mut params = Map::new();
        for param in &self.params {
            match value_of(param, given) {
                Ok(value) => drop(params.insert(param.name.to_string(), value)),
                Err(message) => errors.push(FieldError::new(format!("params.{}", param.name), message)),
            }
        }
        if errors.is_empty() { Ok(Value::Object(params)) } else { Err(errors) }
    }

    fn unknown(&self, name: &str) -> FieldError {
        let names: Vec<&str> = self.params.iter().map(|param| &*param.name).collect();
        let hint = match nearest(name, names.iter().copied()) {
            Some(word) => format!("; did you mean {word:?}?"),
            None if names.is_empty() => "; it has none".to_owned(),
            None => format!("; it has {}", names.join(", ")),
        };
        FieldError::new(format!("params.{name}"), format!("is no parameter of DAG {:?}{hint}", &*self.name))
    }
}

fn value_of(param: &Param, given: &Map<String, Value>) -> Result<Value, String> {
    match given.get(&*param.name).or(param.default.as_ref()) {
        None => Err(format!("must be given: {}", param.kind.wanted())),
        Some(value) => match param.kind.refusal(value) {
            Some(refusal) => Err(refusal),
            None => Ok(value.clone()),
        },
    }
}

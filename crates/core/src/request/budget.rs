//! The budget of a job: several limits given as one object instead of field by field.

use serde::Deserialize;

use super::{FieldError, NewJob};

/// Fields of the job under the names that the `budget` object has for them.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobBudget {
    pub max_attempts: Option<u32>,
    pub timeout_ms: Option<u64>,
    pub deadline_ms: Option<u64>,
}

impl JobBudget {
    /// Sets the fields of a job. A field that the job sets to another value is refused.
    pub fn apply(self, new: &mut NewJob) -> Vec<FieldError> {
        let mut errors = Vec::new();
        set("max_attempts", &mut new.max_attempts, self.max_attempts, &mut errors);
        set("timeout_ms", &mut new.timeout_ms, self.timeout_ms, &mut errors);
        set("deadline_ms", &mut new.deadline_ms, self.deadline_ms, &mut errors);
        errors
    }
}

fn set<T: Copy + PartialEq>(name: &str, field: &mut Option<T>, given: Option<T>, errors: &mut Vec<FieldError>) {
    match (*field, given) {
        (Some(of_job), Some(of_budget)) if of_job != of_budget => {
            errors.push(FieldError::new(format!("budget.{name}"), format_args!("differs from {name}; send one of them")));
        }
        (None, given) => *field = given,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_the_fields_of_the_job_and_must_not_contradict_them() {
        let mut new = NewJob { max_attempts: Some(2), timeout_ms: Some(7), ..NewJob::default() };
        let budget = JobBudget { max_attempts: Some(2), timeout_ms: None, deadline_ms: Some(60_000) };
        assert_eq!(budget.apply(&mut new), []);
        assert_eq!((new.max_attempts, new.timeout_ms, new.deadline_ms), (Some(2), Some(7), Some(60_000)));
        let errors = JobBudget { timeout_ms: Some(8), deadline_ms: Some(1), ..budget }.apply(&mut new);
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["budget.timeout_ms", "budget.deadline_ms"]);
    }
}

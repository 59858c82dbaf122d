//! The variables of `when:` conditions, each made when the first condition reads it.

use std::collections::HashMap;
use std::sync::OnceLock;

use cel::common::types::{CelInt, CelList, CelMap, CelMapKey, CelString};
use cel::common::value::{CowVal, Val};
use cel::context::VariableResolver;

use super::payload::Payload;
use super::subject::Subject;

/// The fields of `job`.
pub(super) const JOB_FIELDS: [&str; 10] =
    ["id", "tenant", "topic", "capability", "priority", "actor", "actor_type", "risk_tags", "requires", "labels"];

pub(super) struct Facts<'a> {
    subject: &'a Subject<'a>,
    payload: OnceLock<Result<Payload<'a>, String>>,
    /// The variables as values of the CEL interpreter, which few conditions need.
    job_value: OnceLock<CelMap<'a>>,
    payload_value: OnceLock<Option<Box<dyn Val + 'a>>>,
}

impl<'a> Facts<'a> {
    pub(super) fn new(subject: &'a Subject<'a>) -> Self {
        Self { subject, payload: OnceLock::new(), job_value: OnceLock::new(), payload_value: OnceLock::new() }
    }

    pub(super) fn subject(&self) -> &Subject<'a> {
        self.subject
    }

    /// The parsed payload, or why it cannot be parsed.
    pub(super) fn payload(&self) -> Result<&Payload<'a>, &str> {
        let parsed = self.payload.get_or_init(|| Payload::parse(self.subject.payload).map_err(|error| error.to_string()));
        parsed.as_ref().map_err(String::as_str)
    }
}

impl VariableResolver for Facts<'_> {
    fn resolve<'b>(&'b self, variable: &str) -> Option<CowVal<'b, 'b>> {
        match variable {
            "job" => Some(CowVal::Borrowed(self.job_value.get_or_init(|| job(self.subject)))),
            "payload" => {
                let value = self.payload_value.get_or_init(|| self.payload().ok().map(Payload::to_val));
                value.as_ref().map(|payload| CowVal::Borrowed(payload.as_ref()))
            }
            "now" => Some(CowVal::owned(CelInt::from(self.subject.now.as_millis()))),
            _ => None,
        }
    }
}

fn job<'a>(subject: &Subject<'a>) -> CelMap<'a> {
    let field = |name: &str| -> Box<dyn Val + 'a> {
        match name {
            "id" => text(subject.job_id),
            "tenant" => text(subject.tenant),
            "topic" => text(subject.topic),
            "capability" => text(subject.capability.unwrap_or("")),
            "priority" => text(subject.priority.as_str()),
            "actor" => text(subject.actor),
            "actor_type" => text(subject.actor_type.unwrap_or("")),
            "risk_tags" => list(subject.risk_tags.iter().map(|tag| text(tag))),
            "requires" => list(subject.requires.iter().map(|name| text(name))),
            _ => Box::new(map(subject.labels.iter().map(|(name, value)| (key(name), text(value))))),
        }
    };
    map(JOB_FIELDS.into_iter().map(|name| (key(name), field(name))))
}

fn text<'a>(text: &'a str) -> Box<dyn Val + 'a> {
    Box::new(CelString::from(text))
}

fn key(name: &str) -> CelMapKey<'_> {
    CelMapKey::String(CelString::from(name))
}

fn list<'a>(items: impl Iterator<Item = Box<dyn Val + 'a>>) -> Box<dyn Val + 'a> {
    Box::new(CelList::from(items.collect::<Vec<_>>()))
}

fn map<'a>(entries: impl Iterator<Item = (CelMapKey<'a>, Box<dyn Val + 'a>)>) -> CelMap<'a> {
    CelMap::from(entries.collect::<HashMap<_, _>>())
}

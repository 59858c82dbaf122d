//! A job as policy sees it, both ways.

use lockgate_core::ids::{JobId, check_name};
use lockgate_core::request::{Caller, FieldError, JobRequest, NewJob};

use crate::names::known_priority;
use crate::request::{json, judged};
use crate::{ToWire, present};
use lockgate_proto::v1;

/// The id of a subject that names none. Nothing is counted or stored under it.
const UNNAMED: &str = "unnamed";

/// What policy may look at, and nothing else.
pub fn subject_to_wire(request: &JobRequest) -> v1::Subject {
    v1::Subject {
        job_id: request.job_id.to_string(),
        tenant: request.tenant.to_string(),
        actor: request.actor.to_string(),
        actor_type: request.actor_type.as_deref().unwrap_or_default().to_owned(),
        topic: request.topic.to_string(),
        capability: request.capability.as_deref().unwrap_or_default().to_owned(),
        risk_tags: request.risk_tags.iter().map(ToString::to_string).collect(),
        requires: request.requires.iter().map(ToString::to_string).collect(),
        labels: request.labels.clone().into_iter().collect(),
        priority: request.priority().to_wire().into(),
        payload_json: crate::json_bytes(&request.payload),
    }
}

/// The request behind a subject, as far as policy can tell requests apart. Tenant, actor and the actor's type are the
/// caller's where the subject names none. Every field that cannot be taken is named.
pub fn subject_from_wire(wire: v1::Subject, caller: &Caller) -> Result<JobRequest, Vec<FieldError>> {
    let mut errors = Vec::new();
    let whose = whose(&wire, caller, &mut errors);
    let priority = known_priority(wire.priority).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    // A subject that names its job was let in before; one that asks what would become of a job is held to the rule for new ones.
    let take = if wire.job_id.is_empty() { json } else { judged };
    let payload = take("payload", &wire.payload_json).unwrap_or_else(|error| {
        errors.push(error);
        None
    });
    // Not a client's choice: jobs of runs and of schedules have ids that no client may choose, and are judged like all others.
    let job_id = present(wire.job_id);
    // Theirs have a ~ besides what names have.
    if let Some(Err(error)) = job_id.as_deref().map(|id| check_name(&id.replace('~', "-"))) {
        errors.push(FieldError::new("job_id", error));
    }
    let id_chosen = job_id.is_some();
    let new = NewJob {
        topic: wire.topic,
        payload,
        priority,
        labels: wire.labels.into_iter().collect(),
        requires: wire.requires.into_iter().collect(),
        capability: present(wire.capability),
        risk_tags: wire.risk_tags.into_iter().collect(),
        ..NewJob::default()
    };
    match JobRequest::check(new, &whose, || job_id.map_or_else(|| JobId::from(UNNAMED), JobId::from)) {
        Ok(request) if errors.is_empty() => Ok(JobRequest { id_chosen, ..request }),
        Ok(_) => Err(errors),
        Err(more) => Err(errors.into_iter().chain(more).collect()),
    }
}

fn whose(wire: &v1::Subject, caller: &Caller, errors: &mut Vec<FieldError>) -> Caller {
    let mut named = |field: &str, name: &str| {
        if let Err(error) = check_name(name).or_else(|error| if name.is_empty() { Ok(()) } else { Err(error) }) {
            errors.push(FieldError::new(field, error));
        }
        !name.is_empty()
    };
    let mut whose = caller.clone();
    if named("tenant", &wire.tenant) {
        whose.tenant = wire.tenant.as_str().into();
    }
    if named("actor", &wire.actor) {
        // The type belongs to the actor: another actor does not have the caller's.
        whose.actor_type = None;
        whose.actor = wire.actor.as_str().into();
    }
    if named("actor_type", &wire.actor_type) {
        whose.actor_type = Some(wire.actor_type.as_str().into());
    }
    whose
}

#[cfg(test)]
mod tests {
    use lockgate_core::lane::Priority;
    use lockgate_core::request::Json;

    use super::*;

    fn request() -> JobRequest {
        let new = NewJob {
            job_id: Some("j".into()),
            topic: "job.deploy".into(),
            payload: Some(Json::trusted(r#"{"a":2,"b":1}"#)),
            priority: Some(Priority::High),
            labels: [("env".to_owned(), "prod".to_owned())].into(),
            requires: ["gpu".to_owned()].into(),
            capability: Some("deploy".into()),
            risk_tags: ["destructive".to_owned()].into(),
            ..NewJob::default()
        };
        let mut caller = Caller::new("acme", "ann");
        caller.actor_type = Some("agent".into());
        JobRequest::check(new, &caller, || unreachable!("the id is chosen")).expect("valid")
    }

    #[test]
    fn what_policy_sees_survives_the_wire() {
        let somebody = Caller::new("other", "bob");
        assert_eq!(subject_from_wire(subject_to_wire(&request()), &somebody), Ok(request()));
    }

    #[test]
    fn whoever_is_not_named_is_the_caller() {
        let wire = v1::Subject { topic: "job.x".into(), ..v1::Subject::default() };
        let mut caller = Caller::new("acme", "ann");
        caller.actor_type = Some("agent".into());
        let request = subject_from_wire(wire.clone(), &caller).expect("valid");
        assert_eq!((request.tenant.as_str(), request.actor.as_str()), ("acme", "ann"));
        assert_eq!(request.actor_type.as_deref(), Some("agent"));

        let other = subject_from_wire(v1::Subject { actor: "bob".into(), ..wire }, &caller).expect("valid");
        assert_eq!((other.actor.as_str(), other.actor_type), ("bob", None));
    }

    #[test]
    fn every_field_that_cannot_be_taken_is_named() {
        let wire = v1::Subject {
            tenant: "a b".into(),
            priority: 9,
            payload_json: "{".into(),
            labels: [("_x".to_owned(), String::new())].into(),
            ..v1::Subject::default()
        };
        let errors = subject_from_wire(wire, &Caller::new("acme", "ann")).expect_err("refused");
        let fields: Vec<&str> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["tenant", "priority", "payload", "topic", "labels"]);
    }

    #[test]
    fn jobs_of_the_platform_are_judged_under_their_own_ids() {
        for id in ["run-01a1e841.0~0", "comp-01a1e841", "cron-01a1e841"] {
            let wire = v1::Subject { job_id: id.to_owned(), ..subject_to_wire(&request()) };
            let back = subject_from_wire(wire, &Caller::new("acme", "kernel")).expect("taken");
            assert_eq!(back.job_id.as_str(), id);
        }
        let wire = v1::Subject { job_id: "no name".to_owned(), ..subject_to_wire(&request()) };
        let errors = subject_from_wire(wire, &Caller::new("acme", "kernel")).expect_err("refused");
        assert_eq!(errors[0].field, "job_id");
    }

    #[test]
    fn a_payload_with_two_faces_is_judged_only_as_that_of_a_job_that_there_is() {
        let asked = |job_id: &str| {
            let wire = v1::Subject {
                job_id: job_id.to_owned(),
                topic: "job.send".to_owned(),
                payload_json: r#"{"to":"evil","to":"ok"}"#.into(),
                ..v1::Subject::default()
            };
            subject_from_wire(wire, &Caller::new("acme", "ann"))
        };
        let errors = asked("").expect_err("it could not be submitted");
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), ["payload.to"]);
        assert!(asked("from-an-earlier-version").is_ok());
    }
}

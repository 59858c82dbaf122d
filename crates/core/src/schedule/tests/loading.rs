use serde_json::json;

use super::*;
use crate::lane::Priority;
use crate::request::JobRequest;

const EXAMPLE: &str = include_str!("../../../../../examples/schedules.yaml");

fn job_of(schedule: &Schedule, now: Timestamp) -> Arc<JobRequest> {
    let turn = schedule.trigger(now).schedule;
    match turn.unbegun(now, KEEP).next() {
        Some((_, Begin::Job(job))) => job,
        other => panic!("{other:?} is no job"),
    }
}

#[test]
fn what_is_left_out_has_a_default() {
    let spec = spec("cron: 0 2 * * *");
    assert_eq!((&*spec.time_zone, spec.jitter_ms, spec.grace_ms), ("UTC", 0, GRACE_MS_DEFAULT));
    assert_eq!((spec.misfire, spec.misfire_window_ms), (Misfire::Latest, MISFIRE_WINDOW_MS_DEFAULT));
    assert_eq!((spec.overlap, spec.queue, spec.paused), (Overlap::Skip, 1, false));
}

#[test]
fn a_spec_survives_being_stored_and_equal_ones_are_called_the_same() {
    let text = "cron: 0 2 * * *\ntime_zone: Europe/Berlin\nstart_at: 2026-01-01T00:00:00Z\njob: {topic: t, payload: {a: [1, \"${nominal}\"]}}";
    let spec = with_work(text);
    let stored: Spec = serde_json::from_str(&serde_json::to_string(&spec).unwrap()).unwrap();
    assert_eq!(stored, spec);
    assert_eq!(stored.content_id(), with_work(text).content_id());
    assert_ne!(stored.content_id(), Spec { queue: 2, ..spec }.content_id());
}

#[test]
fn holes_are_filled_with_the_time_that_the_slot_is_for() {
    let spec = with_work(
        "cron: 0 2 * * *\ntime_zone: Europe/Berlin\njob:\n  topic: t\n  payload: {at: \"${nominal}\", ms: \"${nominal_ms}\", next: \"${nominal_ms + 1}\", text: \"${schedule}-${series}\", plain: 7, dollar: \"$${x}\"}\n  labels: {of: \"${schedule}\"}\n  priority: high\n  deadline: 1h",
    );
    let now = at("2026-06-01T12:00:00Z");
    let job = job_of(&begun(spec, now), now);
    let payload: serde_json::Value = serde_json::from_str(job.payload.as_str()).unwrap();
    let millis = now.as_millis();
    let expected = json!({"at": "2026-06-01T14:00:00+02:00", "ms": millis, "next": millis + 1, "text": "s-manual", "plain": 7, "dollar": "${x}"});
    assert_eq!(payload, expected);
    assert_eq!((job.labels["of"].as_str(), job.priority, job.deadline_ms), ("s", Some(Priority::High), Some(3_600_000)));
    assert_eq!((job.tenant.as_str(), job.actor.as_str()), ("acme", "ann"));
}

#[test]
fn the_params_of_a_run_are_filled_too() {
    let schedule = begun(with_work("every: 1h\ndag: {name: etl, version: 3, params: {day: \"${nominal}\"}}"), ms(0));
    let turn = schedule.trigger(ms(1_000)).schedule;
    let Some((Target::Run(id), Begin::Run(ask))) = turn.unbegun(ms(1_000), KEEP).next() else { panic!("a run") };
    let params = json!({"day": "1970-01-01T00:00:01+00:00"});
    assert_eq!(ask, RunAsk { id: id.clone(), dag: "etl".into(), version: Some(3), params });
}

#[test]
fn the_example_loads() {
    let schedules = load("schedules.yaml", EXAMPLE).unwrap_or_else(|errors| panic!("{}", shown(&errors).join("\n")));
    let names: Vec<&str> = schedules.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["nightly-report", "heartbeat", "hourly-load"]);
    assert_eq!((schedules[2].1.misfire, schedules[2].1.queue), (Misfire::All, 48));
}

#[test]
fn a_file_may_hold_ten_thousand_schedules_and_no_more() {
    let text = |count: usize| {
        let lines: String = (0..count).map(|n| format!("  s{n}: {{every: 1h, job: {{topic: t}}}}\n")).collect();
        format!("version: 1\nschedules:\n{lines}")
    };
    assert_eq!(load("s.yaml", &text(SCHEDULES_MAX)).unwrap().len(), SCHEDULES_MAX);
    let errors = load("s.yaml", &text(SCHEDULES_MAX + 1)).unwrap_err();
    assert_eq!(shown(&errors), ["s.yaml:10003: a file has at most 10000 schedules; put the rest into another"]);
}

use super::*;
use crate::ids::RunId;

fn first_target(schedule: &Schedule) -> Target {
    target(&schedule.trigger(ms(5)).fresh[0])
}

#[test]
fn ids_follow_from_schedule_and_time_and_differ_for_different_ones() {
    let schedule = begun(spec("every: 1h"), ms(0));
    let Target::Job(id) = first_target(&schedule) else { panic!("a job") };
    assert!(id.as_str().starts_with("cron-"), "{id}");
    assert_eq!(first_target(&schedule), Target::Job(id));
    let remade = Schedule { birth: "birth-2".into(), ..schedule.clone() };
    let renamed = Schedule { name: "t".into(), ..schedule.clone() };
    let others = [first_target(&remade), first_target(&renamed), target(&schedule.trigger(ms(6)).fresh[0])];
    assert!(others.iter().all(|other| *other != first_target(&schedule)));
}

#[test]
fn the_run_of_a_schedule_is_named_like_every_run() {
    let schedule = begun(with_work("every: 1h\ndag: {name: etl}"), ms(0));
    let Target::Run(id) = first_target(&schedule) else { panic!("a run") };
    assert_eq!(RunId::of(&id.as_str().into()), Some(id));
}

#[test]
fn clients_cannot_take_the_ids_of_schedules() {
    let new = crate::request::NewJob { job_id: Some("cron-1".into()), topic: "t".into(), ..Default::default() };
    assert!(crate::request::JobRequest::check(new, &caller(), || "x".into()).is_err());
}

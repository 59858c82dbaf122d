use super::*;

fn assert_refused(lines: &str, expected: &[&str]) {
    let errors = load("s.yaml", &file(lines)).expect_err("a broken schedule was loaded");
    let expected: Vec<String> = expected.iter().map(|line| format!("s.yaml:{line}")).collect();
    assert_eq!(shown(&errors), expected, "{lines}");
}

#[test]
fn every_fault_is_told_at_once_with_its_line() {
    assert_refused(
        "crom: 0 2 * * *\ntime_zone: Europe/Berlim\noverlap: wait\nmisfire: none\ngrace: 5\njob: {topic: a b}",
        &[
            "4: unknown key \"crom\" in the schedule; did you mean \"cron\"?",
            "4: the schedule does not say when; add cron or every",
            "5: time_zone \"Europe/Berlim\" is no time zone; write one such as Europe/Berlin; did you mean \"Europe/Berlin\"?",
            "6: unknown overlap \"wait\"; it must be one of allow, skip, queue, replace",
            "7: unknown misfire \"none\"; it must be one of skip, latest, all",
            "8: grace must be a time such as 500ms, 30s, 5m, 2h or 7d",
            "9: topic \"a b\" must not contain ' '; allowed are letters, digits and . _ - :",
        ],
    );
}

#[test]
fn a_rhythm_that_says_nothing_or_two_things_is_refused() {
    let job = "job: {topic: t}";
    assert_refused(&format!("cron: 0 2 * * *\nevery: 1h\n{job}"), &["5: cron and every both say when; remove one"]);
    assert_refused(&format!("every: 500ms\n{job}"), &["4: every must be between 1s and 366d"]);
    assert_refused(&format!("cron: 0 0 30 2 *\n{job}"), &["4: cron \"0 0 30 2 *\" never comes: no month has such a day"]);
    assert_refused(
        &format!("cron: '@fortnightly'\n{job}"),
        &[
            "4: cron \"@fortnightly\" is no cron expression; the names are @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly",
        ],
    );
    let errors = load("s.yaml", &file(&format!("cron: 61 * * * *\n{job}"))).unwrap_err();
    assert!(errors[0].message.starts_with("cron \"61 * * * *\" is no cron expression"), "{}", errors[0]);
    assert_refused(
        &format!("every: 1h\nstart_at: 2026-01-02T00:00:00Z\nend_at: 2026-01-01T00:00:00Z\n{job}"),
        &["6: end_at must be after start_at"],
    );
    assert_refused(
        &format!("cron: 0 0 1 1 *\nstart_at: 2026-01-02T00:00:00Z\nend_at: 2026-01-03T00:00:00Z\n{job}"),
        &["6: no time of the schedule lies before end_at; move it or remove it"],
    );
    assert_refused(
        &format!("every: 1h\nstart_at: tomorrow\n{job}"),
        &["5: start_at must be a moment such as 2030-01-31T12:00:00Z"],
    );
}

#[test]
fn settings_that_would_do_nothing_are_refused() {
    let rest = "every: 1h\njob: {topic: t}";
    assert_refused(
        &format!("queue: 2\n{rest}"),
        &["4: queue does nothing with overlap: skip; remove it or write overlap: queue"],
    );
    assert_refused(
        &format!("misfire: skip\nmisfire_window: 1h\n{rest}"),
        &["5: misfire_window does nothing with misfire: skip; remove it"],
    );
}

#[test]
fn what_it_starts_is_checked_before_it_starts() {
    assert_refused("every: 1h", &["4: the schedule does not say what to start; add job or dag"]);
    assert_refused("every: 1h\njob: {topic: t}\ndag: {name: d}", &["6: job and dag both say what to start; remove one"]);
    assert_refused(
        "every: 1h\njob:\n  topic: t\n  labels: {_x: \"1\"}",
        &["7: labels: \"_x\" is refused: a leading _ is reserved for the platform"],
    );
    assert_refused(
        "every: 1h\njob: {topic: t, payload: {a: \"${nominl}\", b: \"${series\"}}",
        &[
            "5: unknown name \"nominl\" in payload; it knows schedule, nominal, nominal_ms, series; did you mean \"nominal\"?",
            "5: a ${ in payload is not closed; add }, or write $${ where ${ is meant as text",
        ],
    );
    assert_refused(
        "every: 1h\njob: {topic: t, payload: \"${nominal_ms / 0}\"}",
        &["5: the job cannot be made: payload: it divides by zero"],
    );
    assert_refused("every: 1h\ndag: {name: d, params: 5}", &["5: params must be a map of keys and values"]);
}

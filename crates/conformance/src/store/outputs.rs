//! Results: held, exposed, quarantined.

use std::time::Duration;

use lockgate_core::job::{EventKind, Job, JobState, Outcome};
use lockgate_core::lane::ReadyKey;
use lockgate_core::output::{OutputDecision, OutputStep};
use lockgate_core::request::{Json, NewJob};

use super::stage::{Found, Proof, StoreHarness, allow, deny, new_job, release, replay, scanned, success};
use lockgate_ports::store::{ChangeError, DeadLetterQuery, Totals};

const HOLD: OutputStep = OutputStep::Scan { hold: true };
const SCAN_LATER: OutputStep = OutputStep::Scan { hold: false };

async fn result(h: &StoreHarness, id: &str) -> Found<Option<Json>> {
    Ok(h.store.detail(&id.into()).await?.ok_or("no detail")?.result)
}

/// Submitted and run, with what the check of the metadata said.
async fn ran(h: &StoreHarness, id: &str, output: OutputStep) -> Found<Job> {
    let job = h.submit(new_job(id)).await?;
    h.run_checked(&job, success(), output).await
}

fn ok() -> Json {
    Json::trusted(r#"{"ok":true}"#)
}

pub async fn a_held_result_is_kept_and_nobody_holds_its_job(h: &StoreHarness) -> Proof {
    let job = h.submit(NewJob { deadline_ms: Some(1_000), ..new_job("one") }).await?;
    let held = h.run_checked(&job, success(), HOLD).await?;
    assert_eq!((held.state(), held.in_output_check()), (JobState::Running, true));
    h.advance_ms(2_000);
    let detail = h.store.detail(&"one".into()).await?.ok_or("no detail")?;
    assert_eq!((detail.job.clone(), detail.result), (held, Some(ok())));
    assert!(!detail.job.result_is_out());
    assert_eq!(detail.events.last().map(|event| event.kind), Some(EventKind::OutputHeld));
    assert_eq!(h.store.held(&"runner".into()).await?, [], "its work is done");
    assert!(h.store.close_session(&"runner".into(), 1).await?);
    assert_eq!(h.store.closed_holding().await?, []);
    assert_eq!(h.store.expired(ReadyKey::default(), 10).await?, [], "a deadline waits for the scan");
    assert_eq!(h.store.totals().await?.live, [0, 0, 1, 0]);
    Ok(())
}

pub async fn a_held_result_comes_out_with_the_end(h: &StoreHarness) -> Proof {
    let redacted = Json::trusted(r#"{"ok":"[redacted]"}"#);
    for (id, decision, state, comes_out) in [
        ("fine", OutputDecision::Allow, JobState::Succeeded, ok()),
        ("redacted", OutputDecision::Redact, JobState::Succeeded, redacted),
        ("bad", OutputDecision::Quarantine, JobState::OutputQuarantined, ok()),
    ] {
        let held = ran(h, id, HOLD).await?;
        let ended = h.step(&held, scanned(&held, decision, ok())).await?;
        assert_eq!((ended.state(), result(h, id).await?), (state, Some(comes_out)), "{id}");
    }
    let held = ran(h, "kept", HOLD).await?;
    let mut silent = held.next(scanned(&held, OutputDecision::Allow, ok()), &h.env(allow()))?;
    silent.result = None;
    h.commit(silent).await??;
    assert_eq!(result(h, "kept").await?, Some(ok()), "no other result given, so it is the one that was held");
    let totals = Totals { live: [0; 4], dead_letters: [0, 0, 1, 0], ended: 4 };
    assert_eq!(h.store.totals().await?, totals);
    Ok(())
}

pub async fn a_held_result_does_not_outlive_its_life(h: &StoreHarness) -> Proof {
    let held = ran(h, "one", HOLD).await?;
    let bad = h.step(&held, scanned(&held, OutputDecision::Deny, ok())).await?;
    let reborn = h.step(&bad, replay()).await?;
    assert_eq!((reborn.state(), result(h, "one").await?), (JobState::Scheduled, None));
    let again = Outcome::Succeeded { result: Json::trusted("2") };
    let held = h.run_checked(&reborn, again, HOLD).await?;
    assert_eq!((held.in_output_check(), result(h, "one").await?), (true, Some(Json::trusted("2"))));
    Ok(())
}

pub async fn held_results_of_every_size_come_back(h: &StoreHarness) -> Proof {
    for size in [0, 1_000, 5_000, 1_000_000] {
        let id = format!("size-{size}");
        let long = Json::trusted(format!("\"{}\"", "x".repeat(size)));
        let job = h.submit(new_job(&id)).await?;
        let held = h.run_checked(&job, Outcome::Succeeded { result: long.clone() }, HOLD).await?;
        assert!(result(h, &id).await? == Some(long.clone()), "lost when held at {size}");
        h.step(&held, scanned(&held, OutputDecision::Allow, long.clone())).await?;
        assert!(result(h, &id).await? == Some(long), "lost when ended at {size}");
    }
    Ok(())
}

pub async fn late_quarantine_and_release_keep_letters_and_totals_right(h: &StoreHarness) -> Proof {
    let letters = async || h.store.dead_letters(DeadLetterQuery { limit: 10, ..DeadLetterQuery::default() }).await;
    let out = ran(h, "one", SCAN_LATER).await?;
    let fine = Totals { ended: 1, ..Totals::default() };
    assert_eq!((out.state(), h.store.totals().await?), (JobState::Succeeded, fine));
    let bad = h.step(&out, scanned(&out, OutputDecision::Quarantine, ok())).await?;
    let found: Vec<JobState> = letters().await?.items.iter().map(|letter| letter.state).collect();
    assert_eq!((bad.state(), found), (JobState::OutputQuarantined, vec![JobState::OutputQuarantined]));
    assert_eq!(h.store.totals().await?, Totals { dead_letters: [0, 0, 1, 0], ..fine });
    assert!(!bad.result_is_out());
    let free = h.step(&bad, release()).await?;
    assert_eq!((free.state(), letters().await?.items), (JobState::Succeeded, Vec::new()));
    assert_eq!(h.store.totals().await?, fine);
    assert_eq!((free.result_is_out(), result(h, "one").await?), (true, Some(ok())));
    Ok(())
}

pub async fn a_late_redaction_replaces_the_result(h: &StoreHarness) -> Proof {
    let out = ran(h, "one", SCAN_LATER).await?;
    assert_eq!(result(h, "one").await?, Some(ok()), "out while it is scanned");
    let redacted = h.step(&out, scanned(&out, OutputDecision::Redact, ok())).await?;
    assert_eq!((redacted.state(), redacted.version), (JobState::Succeeded, out.version + 1));
    assert_eq!(result(h, "one").await?, Some(Json::trusted(r#"{"ok":"[redacted]"}"#)));
    assert_eq!(h.store.totals().await?, Totals { ended: 1, ..Totals::default() });
    Ok(())
}

pub async fn a_late_change_without_a_result_keeps_the_one_there(h: &StoreHarness) -> Proof {
    let out = ran(h, "one", SCAN_LATER).await?;
    let mut silent = out.next(scanned(&out, OutputDecision::Allow, Json::trusted("2")), &h.env(allow()))?;
    silent.result = None;
    h.commit(silent).await??;
    assert_eq!((h.load("one").await?.version, result(h, "one").await?), (out.version + 1, Some(ok())));
    Ok(())
}

pub async fn a_late_change_of_an_older_version_conflicts(h: &StoreHarness) -> Proof {
    let out = ran(h, "one", SCAN_LATER).await?;
    let scan = |decision| out.next(scanned(&out, decision, ok()), &h.env(allow()));
    let (allowed, late) = (scan(OutputDecision::Allow)?, scan(OutputDecision::Quarantine)?);
    let results = h.store.commit(vec![allowed.into(), late.clone().into()]).await?;
    assert!(results[0].is_ok());
    assert_eq!(results[1], Err(ChangeError::Conflict));
    assert_eq!(h.commit(late).await?, Err(ChangeError::Conflict));
    assert_eq!(h.store.totals().await?.dead_letters, [0; 4]);
    assert_eq!(h.load("one").await?.state(), JobState::Succeeded);
    Ok(())
}

pub async fn a_late_change_does_not_move_the_end(h: &StoreHarness) -> Proof {
    let out = ran(h, "one", SCAN_LATER).await?;
    h.advance_ms(1_000);
    h.step(&out, scanned(&out, OutputDecision::Quarantine, ok())).await?;
    assert_eq!(h.load("one").await?.life.ended_at, out.life.ended_at);
    assert_eq!(h.store.prune(Duration::from_millis(999), 10).await?, 1, "kept from the end of its work on");
    assert_eq!(h.store.totals().await?, Totals::default(), "its letter goes too");
    Ok(())
}

pub async fn a_new_life_has_no_result_of_the_one_before(h: &StoreHarness) -> Proof {
    let quarantined = async |id| -> Found<Job> {
        let out = ran(h, id, SCAN_LATER).await?;
        h.step(&out, scanned(&out, OutputDecision::Quarantine, ok())).await
    };
    let bad = quarantined("reborn").await?;
    h.step(&bad, replay()).await?;
    assert_eq!(result(h, "reborn").await?, None);
    // Denied at once, the job stays among the ended ones; its quarantined result must not be exposed that way.
    let bad = quarantined("denied").await?;
    let denied = bad.next(replay(), &h.env(deny()))?;
    h.commit(denied).await??;
    assert_eq!((h.load("denied").await?.state(), result(h, "denied").await?), (JobState::Denied, None));
    Ok(())
}

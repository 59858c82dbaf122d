//! New timelines after the Store was restored to an earlier state.

use std::time::Duration;

use lockgate_core::audit::{AuditAction, AuditEntry};
use lockgate_core::ids::EdgeId;
use lockgate_core::job::{AttemptReport, Evidence, Illegal, Input, JobState, Outcome, Reason};
use lockgate_core::output::OutputStep;
use lockgate_core::request::Json;

use super::stage::{Found, Proof, StoreHarness, allow, cancel, new_job, success};
use lockgate_ports::clock::Clock;
use lockgate_ports::store::ChangeError;

const SALT: [u8; 16] = [9; 16];

fn entry(h: &StoreHarness) -> AuditEntry {
    AuditEntry {
        at: h.clock.now(),
        tenant: "default".into(),
        actor: "lockgate".into(),
        action: AuditAction::StoreRestored,
        subject: "backup-1".into(),
        detail: Json::trusted("{}"),
    }
}

async fn restored(h: &StoreHarness) -> Found<Option<u64>> {
    Ok(h.store.begin_timeline(SALT, entry(h)).await?)
}

pub async fn tokens_of_another_timeline_do_not_count(h: &StoreHarness) -> Proof {
    let waiting = h.submit(new_job("waiting")).await?;
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&h.submit(new_job("held")).await?, "s", epoch).await?;
    let token = h.submit(new_job("lost")).await?;
    let away = h.dispatch(&token, "s", epoch).await?;
    let evidence = Evidence::Attached { session: "s".into(), epoch };
    let lost =
        Input::Lost { token: away.life.attempt.token.clone(), reason: Reason::AgentLost, evidence, turn: Duration::ZERO };
    let lost = h.step(&away, lost).await?;
    let ended = h.run(&h.submit(new_job("ended")).await?, success()).await?;
    assert_eq!(restored(h).await?, Some(3), "those that live");

    let report = |token: &lockgate_core::ids::AttemptToken| {
        let outcome = Outcome::Succeeded { result: Json::null() };
        Input::Reported(AttemptReport { token: token.clone(), started_at: None, outcome, output: OutputStep::Pass })
    };
    for before in [&waiting, &held, &lost] {
        let now = h.load(before.request.job_id.as_str()).await?;
        assert_eq!(now.state(), before.state());
        assert_ne!(now.life.attempt.token, before.life.attempt.token);
        let late = now.next(report(&before.life.attempt.token), &h.env(allow()));
        assert_eq!(late.map(|_| ()), Err(Illegal::Superseded), "a report of the other timeline");
        let stale = before.next(cancel(), &h.env(allow()))?;
        assert_eq!(h.commit(stale).await?, Err(ChangeError::Conflict), "a step decided in the other timeline");
        assert_eq!(h.step(&now, cancel()).await?.state(), JobState::Cancelled, "and life goes on");
    }
    let now = h.load("lost").await?;
    assert_eq!(now.life.lost, None);
    assert_eq!(h.load("ended").await?, ended, "what has ended is as it was");
    Ok(())
}

pub async fn the_lost_attempt_of_another_timeline_does_not_count_either(h: &StoreHarness) -> Proof {
    let epoch = h.attach("s").await?;
    let held = h.dispatch(&h.submit(new_job("one")).await?, "s", epoch).await?;
    let token = held.life.attempt.token.clone();
    let evidence = Evidence::Attached { session: "s".into(), epoch };
    h.step(&held, Input::Lost { token: token.clone(), reason: Reason::AgentLost, evidence, turn: Duration::ZERO }).await?;
    restored(h).await?;
    let outcome = Outcome::Succeeded { result: Json::null() };
    let report = AttemptReport { token, started_at: None, outcome, output: OutputStep::Pass };
    let late = h.load("one").await?.next(Input::Reported(report), &h.env(allow()));
    assert_eq!(late.map(|_| ()), Err(Illegal::Superseded));
    Ok(())
}

pub async fn nothing_is_renewed_while_somebody_is_at_work(h: &StoreHarness) -> Proof {
    let job = h.submit(new_job("one")).await?;
    h.store.renew_edge(&EdgeId::from("edge"), Duration::from_secs(6)).await?;
    assert_eq!(restored(h).await?, None);
    assert_eq!(h.load("one").await?, job);
    assert_eq!(h.store.audit(0, 10).await?, []);
    h.advance_ms(6_000);
    assert_eq!(restored(h).await?, Some(1));
    let told: Vec<_> = h.store.audit(0, 10).await?.into_iter().map(|row| row.entry).collect();
    assert_eq!(told.len(), 1);
    assert_eq!((told[0].action, &*told[0].subject), (AuditAction::StoreRestored, "backup-1"));
    Ok(())
}

pub async fn a_long_list_of_jobs_is_renewed_to_its_end(h: &StoreHarness) -> Proof {
    let births: Result<Vec<_>, _> =
        (0..2_100).map(|n| h.birth("acme", new_job(&format!("j-{n}")), allow()).map(Into::into)).collect();
    for answer in h.store.commit(births?).await? {
        answer?;
    }
    let (first, last) = (h.load("j-0").await?, h.load("j-2099").await?);
    assert_eq!(restored(h).await?, Some(2_100));
    for before in [first, last] {
        let now = h.load(before.request.job_id.as_str()).await?;
        assert_ne!(now.life.attempt.token, before.life.attempt.token);
        assert_eq!(now.version, before.version + 1);
    }
    Ok(())
}

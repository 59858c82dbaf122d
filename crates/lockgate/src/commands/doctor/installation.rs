//! Examines a running installation through its API.

use lockgate_ports::checkup::{Check, Grade};
use lockgate_proto::v1;

use crate::error::CliError;
use crate::session::CliSession;

/// A check without permission is reported as such, and the others are done nevertheless. If the server does not answer at
/// all, there are no checks.
pub(super) async fn examine(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let process = match process(session).await {
        Err(error @ CliError::Unreachable { .. }) => return Err(error),
        looked => looked,
    };
    let looks = [
        ("process", process),
        ("workers", workers(session).await),
        ("policy", policy(session).await),
        ("access", access(session).await),
        ("audit", audit(session).await),
        ("dead letters", dead_letters(session).await),
    ];
    Ok(looks.into_iter().flat_map(|(what, found)| found.unwrap_or_else(|error| vec![not_seen(what, &error)])).collect())
}

fn not_seen(what: &'static str, error: &CliError) -> Check {
    let failed = matches!(error, CliError::Unreachable { .. } | CliError::Busy { .. } | CliError::Server(_));
    Check::new(what, "not seen", if failed { Grade::Bad } else { Grade::Notice }, error.to_string())
}

async fn process(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let health = session.answer(session.monitor().get_health(v1::GetHealthRequest {}).await)?;
    let mut checks = of_findings(&health);
    checks.extend(health.breakers.iter().map(of_breaker));
    Ok(checks)
}

fn of_findings(health: &v1::Health) -> Vec<Check> {
    if health.findings.is_empty() {
        return vec![Check::new("process", &*health.status, Grade::Good, "the store answers and every loop moves")];
    }
    let check = |finding: &v1::HealthFinding| {
        let grade = if finding.serious { Grade::Bad } else { Grade::Notice };
        Check::new("process", &*finding.code, grade, format!("{}: {}", finding.detail, finding.advice))
    };
    health.findings.iter().map(check).collect()
}

fn of_breaker(breaker: &v1::Breaker) -> Check {
    let found = format!("{} {}", breaker.name, breaker.state);
    match breaker.state.as_str() {
        "closed" => Check::new("breaker", found, Grade::Good, "the safety kernel answers"),
        _ => Check::new("breaker", found, Grade::Bad, "the safety kernel does not answer; `lockgate breaker` tells more"),
    }
}

async fn workers(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let listed = session.client.clone().list_workers(v1::ListWorkersRequest {}).await;
    let count = session.answer(listed)?.workers.len();
    Ok(vec![match count {
        0 => Check::new("workers", "none", Grade::Bad, "no job starts; `lockgate worker` is one"),
        _ => Check::new("workers", count.to_string(), Grade::Good, "somebody takes jobs"),
    }])
}

async fn policy(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let in_force = session.admin().get_policy(v1::GetPolicyRequest { snapshot: String::new() }).await;
    let policy = session.answer(in_force)?;
    // There is a circuit breaker only with a remote safety kernel.
    let health = session.answer(session.monitor().get_health(v1::GetHealthRequest {}).await)?;
    Ok(vec![match policy.version {
        0 if !health.breakers.is_empty() => {
            let meaning =
                "a safety kernel elsewhere judges, and has not said by which policy; `lockgate breaker` tells how it fares";
            Check::new("policy", "not known here", Grade::Notice, meaning)
        }
        0 => Check::new(
            "policy",
            policy.snapshot,
            Grade::Notice,
            "every job is allowed; `lockgate policy apply` puts rules in force",
        ),
        _ => Check::new("policy", policy.snapshot, Grade::Good, "nothing runs without its verdict"),
    }])
}

async fn access(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let told = session.answer(session.access().who_am_i(v1::WhoAmIRequest {}).await)?;
    Ok(vec![match told.credential.is_empty() {
        true => Check::new("access", "open", Grade::Notice, "whoever reaches it is whoever they say; `serve --auth` asks"),
        false => Check::new("access", "closed", Grade::Good, "everybody shows a credential"),
    }])
}

async fn audit(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let told = session.answer(session.admin().verify_audit(v1::VerifyAuditRequest {}).await)?;
    let mut checks = vec![match told.broken.is_empty() {
        true => {
            let found = format!("{} rows in {} blocks, {} not sealed yet", told.rows, told.blocks, told.unsealed);
            Check::new("audit", found, Grade::Good, "the trail was not touched")
        }
        false => Check::new("audit", told.broken, Grade::Bad, "the trail was changed; compare it with a backup"),
    }];
    let todo = "acknowledged work was lost and the loss accepted; docs/backup.md says what that means";
    checks.extend(told.losses.into_iter().map(|loss| Check::new("loss", loss, Grade::Notice, todo)));
    Ok(checks)
}

async fn dead_letters(session: &CliSession) -> Result<Vec<Check>, CliError> {
    let queues = session.answer(session.client.clone().list_queues(v1::ListQueuesRequest {}).await)?;
    let count: u64 = queues.dead_letters.values().sum();
    Ok(vec![match count {
        0 => Check::new("dead letters", "none", Grade::Good, "nothing ended badly, or all of it was looked at"),
        _ => Check::new(
            "dead letters",
            count.to_string(),
            Grade::Notice,
            "`lockgate dlq list` tells why, `lockgate dlq replay` tries again",
        ),
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(serious: bool) -> v1::HealthFinding {
        v1::HealthFinding {
            code: "store_refusing".to_owned(),
            serious,
            detail: "the disk is full".to_owned(),
            advice: "make room".to_owned(),
        }
    }

    #[test]
    fn what_makes_a_process_not_ready_is_bad_and_what_is_late_is_a_notice() {
        let health = v1::Health { status: "ready".to_owned(), ..v1::Health::default() };
        assert_eq!(of_findings(&health)[0].grade, Grade::Good);
        let health = v1::Health { findings: vec![finding(true), finding(false)], ..health };
        let found = of_findings(&health);
        assert_eq!([found[0].grade, found[1].grade], [Grade::Bad, Grade::Notice]);
        assert_eq!(found[0].meaning, "the disk is full: make room");
    }

    #[test]
    fn a_breaker_that_is_not_closed_is_bad() {
        let breaker = |state: &str| v1::Breaker { state: state.to_owned(), ..v1::Breaker::default() };
        let grades = ["closed", "half_open", "open"].map(|state| of_breaker(&breaker(state)).grade);
        assert_eq!(grades, [Grade::Good, Grade::Bad, Grade::Bad]);
    }
}

use super::*;
use crate::ids::TenantId;

fn grant(roles: &[Role], reach: Reach) -> Grant {
    Grant { reach, roles: roles.iter().copied().collect(), pools: Default::default(), payloads: true }
}

fn of(tenant: &str) -> Reach {
    Reach::Tenant(TenantId::from(tenant))
}

#[test]
fn a_key_is_read_as_it_was_shown_and_its_secret_is_not_printed() {
    let key = ApiKey::new(std::array::from_fn(|n| u8::try_from(n).expect("below 256")));
    let text = key.reveal();
    assert_eq!(text.len(), 4 + 16 + 1 + 64);
    assert_eq!(ApiKey::parse(&text), Ok(key.clone()));
    assert_eq!(format!("{key:?}"), "lgk_0001020304050607_…");
    assert_eq!(format!("{:?}", DigestKey::new([1; 32])), "DigestKey(…)");
}

#[test]
fn what_is_not_quite_a_key_is_none() {
    let good = ApiKey::new([0xab; ApiKey::RANDOM_BYTES]).reveal();
    let wrong = [
        String::new(),
        good.to_uppercase(),
        good[..good.len() - 1].to_owned(),
        format!("{good}0"),
        good.replace("lgk_", "lgk-"),
        good.replacen('a', "g", 1),
        format!("lgk_{}_{}", "0".repeat(64), "0".repeat(16)),
        format!("lgk_{}_{}", "é".repeat(8), "0".repeat(64)),
    ];
    for text in wrong {
        assert_eq!(ApiKey::parse(&text), Err(KeyError), "{text}");
    }
}

#[test]
fn a_digest_fits_its_own_key_row_and_installation_only() {
    let (key, other) = (ApiKey::new([1; ApiKey::RANDOM_BYTES]), ApiKey::new([2; ApiKey::RANDOM_BYTES]));
    let ours = DigestKey::new([3; 32]);
    let kind = CredentialKind::Key { digest: ours.digest(&key) };
    assert!(ours.matches(&key, &kind));
    assert!(!ours.matches(&other, &kind), "another secret");
    assert!(!ours.matches(&ApiKey::first(&key), &kind), "the same secret under another id");
    assert!(!DigestKey::new([4; 32]).matches(&key, &kind), "another installation");
    assert!(!ours.matches(&key, &CredentialKind::Certificate));
}

#[test]
fn every_permission_is_somebodys_and_every_role_has_its_point() {
    for permission in Permission::ALL {
        assert!(Role::ALL.into_iter().any(|role| permission.is_given_to(role)), "{permission:?}");
    }
    let only = |role: Role| Permission::ALL.into_iter().filter(move |permission| permission.is_given_to(role)).count();
    assert_eq!(only(Role::Worker), 3, "enter, work and check");
    assert_eq!(only(Role::Scheduler), 4, "enter, explain, check and judge");
    assert!(Permission::ALL.into_iter().all(|p| p == Permission::Work || p.is_given_to(Role::Admin)));
    for role in Role::ALL {
        assert_eq!(role.as_str().parse(), Ok(role));
    }
}

#[test]
fn payloads_are_seen_only_where_the_grant_says_so() {
    let mut viewer = grant(&[Role::Viewer], of("a"));
    assert!(viewer.allows(Permission::SeePayloads));
    viewer.payloads = false;
    assert!(!viewer.allows(Permission::SeePayloads) && viewer.allows(Permission::Look));
    assert!(!grant(&[Role::Worker], Reach::Everyone).allows(Permission::SeePayloads));
}

#[test]
fn nobody_gives_away_what_they_do_not_have() {
    let admin = grant(&[Role::Admin], of("a"));
    assert!(admin.covers(&grant(&[Role::Operator], of("a"))));
    assert!(!admin.covers(&grant(&[Role::Viewer], of("b"))));
    assert!(!admin.covers(&grant(&[Role::Viewer], Reach::Everyone)));
    assert!(!grant(&[Role::Operator], Reach::Everyone).covers(&grant(&[Role::Viewer], of("a"))));
    let blind = Grant { payloads: false, ..grant(&[Role::Admin], Reach::Everyone) };
    assert!(!blind.covers(&grant(&[Role::Viewer], of("a"))));
    let worker = Grant { payloads: false, ..grant(&[Role::Worker], Reach::Everyone) };
    assert!(!blind.covers(&worker), "a worker is sent payloads");
}

#[test]
fn a_caller_acts_for_a_tenant_in_reach() {
    let identity = |reach| Identity {
        actor: "ann".into(),
        actor_type: None,
        grant: grant(&[Role::Viewer], reach),
        via: CredentialId::from("x"),
        source: None,
    };
    let tenant = |identity: &Identity, asked: Option<&str>| {
        let asked = asked.map(TenantId::from);
        identity.caller(asked.as_ref()).map(|caller| caller.tenant.to_string())
    };
    let own = identity(of("a"));
    assert_eq!(tenant(&own, None).as_deref(), Some("a"));
    assert_eq!(tenant(&own, Some("a")).as_deref(), Some("a"));
    assert_eq!(tenant(&own, Some("b")), None);
    let all = identity(Reach::Everyone);
    assert_eq!(tenant(&all, None).as_deref(), Some("default"));
    assert_eq!(tenant(&all, Some("b")).as_deref(), Some("b"));
    assert!(!own.caller(None).expect("its own").sees_everyone && all.caller(None).expect("some").sees_everyone);
}

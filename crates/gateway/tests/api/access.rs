//! Credentials: made, shown once, replaced, ended; and what is seen with them.

use std::time::Duration;

use serde_json::json;
use tonic::Code;
use tonic::metadata::MetadataValue;

use crate::support::{Closed, Server, echo, hello};

#[tokio::test]
async fn a_key_is_shown_once_and_its_secret_is_nowhere() {
    let server = Closed::start().await;
    let body = json!({ "actor": "ci", "roles": ["submitter"], "tenant": "acme", "payloads": true });
    let made = server.post_as(&server.admin_key, "/v1/keys", &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = made.json["key"].as_str().expect("a key").to_owned();
    let secret = key.rsplit('_').next().expect("a secret").to_owned();

    let me = server.get_as(&key, "/v1/whoami").await;
    assert_eq!((&me.json["actor"], &me.json["tenant"]), (&json!("ci"), &json!("acme")), "{me:?}");
    let listed = server.get_as(&server.admin_key, "/v1/credentials").await;
    assert_eq!(listed.json["credentials"].as_array().map(Vec::len), Some(2), "{listed:?}");
    let audit = server.get_as(&server.admin_key, "/v1/audit?limit=1000").await;
    for text in [&me.text, &listed.text, &audit.text] {
        assert!(!text.contains(&secret) && !text.contains("digest"), "{text}");
    }
}

#[tokio::test]
async fn what_is_wrong_expired_or_revoked_counts_for_nothing() {
    let server = Closed::start().await;
    let good = server.key("viewer", Some("acme")).await;
    let mut tampered = good.clone().into_bytes();
    let last = tampered.last_mut().expect("not empty");
    *last = if *last == b'0' { b'1' } else { b'0' };
    let tampered = String::from_utf8(tampered).expect("text");
    let body = json!({ "actor": "late", "roles": ["viewer"], "tenant": "acme", "lasts_ms": 60_000 });
    let late = server.post_as(&server.admin_key, "/v1/keys", &body).await.json["key"].as_str().expect("a key").to_owned();
    assert_eq!(server.get_as(&late, "/v1/jobs").await.status, 200);
    server.clock.advance(Duration::from_secs(61));
    let revoked = server.key("viewer", Some("acme")).await;
    let id = revoked.split('_').nth(1).expect("an id").to_owned();
    assert_eq!(server.get_as(&revoked, "/v1/jobs").await.status, 200);
    let ended = server.post_as(&server.admin_key, &format!("/v1/credentials/{id}/revoke"), &json!({})).await;
    assert_eq!(ended.json["ended"], true, "{ended:?}");

    for bad in [&tampered, &late, &revoked, "lgk_x_y", "eyJhbGciOiJub25lIn0.e30.", "…"] {
        let reply = server.get_as(bad, "/v1/jobs").await;
        reply.is_problem(401, "unauthenticated");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert!(!reply.text.contains(bad), "{reply:?}");
    }
    assert_eq!(server.get_as(&good, "/v1/jobs").await.status, 200);
}

#[tokio::test]
async fn who_guesses_is_made_to_wait() {
    let server = Closed::start().await;
    let mut last = 0;
    for _ in 0..11 {
        last = server.get_as("lgk_0011223344556677_00", "/v1/jobs").await.status;
    }
    assert_eq!(last, 429);
    let refused = server.get_as("guess", "/v1/jobs").await;
    refused.is_problem(429, "too_many_failures");
    assert!((1..=10).contains(&refused.header("retry-after").parse::<u32>().expect("seconds")), "{refused:?}");
    // Others may share the address.
    assert_eq!(server.get_as(&server.admin_key, "/v1/jobs").await.status, 200);
    assert_eq!(server.get("/healthz").await.status, 200);
}

#[tokio::test]
async fn who_invents_keys_is_made_to_wait_and_good_ones_get_in() {
    let server = Closed::start().await;
    let known = server.key("viewer", Some("acme")).await;
    let invented = |n: usize| format!("lgk_{n:016x}_{}", "0".repeat(64));
    let first = (1..=10).map(|n| {
        let (server, key) = (&server, invented(n));
        async move { server.get_as(&key, "/v1/jobs").await.status }
    });
    assert_eq!(futures::future::join_all(first).await, [401_u16; 10]);
    for n in 11..40 {
        server.get_as(&invented(n), "/v1/jobs").await.is_problem(429, "too_many_failures");
        assert_eq!(server.get_as(&known, "/v1/jobs").await.status, 200, "others may share the address");
    }
    // A key that this server was not shown before gets its turn.
    let let_in = async || server.get_as(&server.admin_key, "/v1/jobs").await.status == 200;
    server.wait_for("the first key comes in", let_in).await;
}

#[tokio::test]
async fn a_replaced_key_goes_on_for_a_while() {
    let server = Closed::start().await;
    let old = server.key("submitter", Some("acme")).await;
    let id = old.split('_').nth(1).expect("an id");
    let path = format!("/v1/keys/{id}/rotate");
    let made = server.post_as(&server.admin_key, &path, &json!({ "overlap_ms": 60_000 })).await;
    let new = made.json["key"].as_str().expect("a key").to_owned();
    for key in [&old, &new] {
        assert_eq!(server.get_as(key, "/v1/jobs").await.status, 200);
    }
    server.clock.advance(Duration::from_secs(61));
    assert_eq!(server.get_as(&old, "/v1/jobs").await.status, 401);
    assert_eq!(server.get_as(&new, "/v1/jobs").await.status, 200);
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let server = Closed::start().await;
    let own = server.key_with("admin", Some("acme"), false).await;
    let refused = |body: serde_json::Value| {
        let (server, own) = (&server, own.clone());
        async move { server.post_as(&own, "/v1/keys", &body).await }
    };
    refused(json!({ "actor": "x", "roles": ["admin"] })).await.is_problem(403, "permission_denied");
    let other = json!({ "actor": "x", "roles": ["viewer"], "tenant": "other" });
    refused(other).await.is_problem(403, "permission_denied");
    let seeing = json!({ "actor": "x", "roles": ["viewer"], "tenant": "acme", "payloads": true });
    refused(seeing).await.is_problem(403, "permission_denied");
    let made = refused(json!({ "actor": "x", "roles": ["viewer"], "tenant": "acme" })).await;
    assert_eq!(made.status, 201, "{made:?}");
    // What is out of reach does not exist.
    let first = "0000000000000000";
    server.post_as(&own, &format!("/v1/credentials/{first}/revoke"), &json!({})).await.is_problem(404, "not_found");
    let listed = server.get_as(&own, "/v1/credentials").await;
    assert_eq!(listed.json["credentials"].as_array().map(Vec::len), Some(2), "{listed:?}");
    let mut after = String::new();
    loop {
        let page = server.get_as(&own, &format!("/v1/credentials?limit=1{after}")).await;
        assert!(!page.text.contains(first), "{page:?}");
        let Some(next) = page.json["next_after"].as_str() else { break };
        after = format!("&after={next}");
    }
    let wish = json!({ "actor": "x", "roles": ["viewer"] });
    let body = json!({ "subject": "dns:theirs.example", "credential": wish });
    server.post_as(&own, "/v1/certificates", &body).await.is_problem(403, "permission_denied");
}

#[tokio::test]
async fn a_certificate_is_bound_by_a_name_of_a_kind() {
    let server = Closed::start().await;
    let wish = json!({ "actor": "robot", "roles": ["viewer"], "tenant": "acme" });
    let bind = |subject: &str| json!({ "subject": subject, "credential": wish });
    for bad in ["robot.example", "dns:", "ip:10.0.0.1"] {
        let refused = server.post_as(&server.admin_key, "/v1/certificates", &bind(bad)).await;
        refused.is_problem(400, "invalid_argument");
        assert_eq!(refused.fields(), ["subject"]);
    }
    assert_eq!(server.post_as(&server.admin_key, "/v1/certificates", &bind("dns:robot.example")).await.status, 201);
    server.post_as(&server.admin_key, "/v1/certificates", &bind("dns:robot.example")).await.is_problem(409, "outdated");
    let misspelt =
        json!({ "subject": "dns:b.example", "credential": { "actor": "x", "roles": ["viewer"], "tenat": "acme" } });
    server.post_as(&server.admin_key, "/v1/certificates", &misspelt).await.is_problem(400, "invalid_argument");
}

#[tokio::test]
async fn a_worker_asks_the_kernel_about_actions_and_nothing_else() {
    let server = Closed::start().await;
    let key = server.key("worker", None).await;
    let ask = async |what: lockgate_proto::v1::check_request::What| {
        let mut request = tonic::Request::new(lockgate_proto::v1::CheckRequest { what: Some(what) });
        let bearer: MetadataValue<_> = format!("Bearer {key}").parse().expect("metadata");
        request.metadata_mut().insert("authorization", bearer);
        let channel = server.channel().await;
        let mut kernel = lockgate_proto::v1::safety_kernel_client::SafetyKernelClient::new(channel);
        kernel.check(request).await.expect_err("there is no such attempt").code()
    };
    let action =
        lockgate_proto::v1::Action { job_id: "none".into(), kind: "url".into(), value: "x".into(), ..Default::default() };
    assert_eq!(ask(lockgate_proto::v1::check_request::What::Action(action)).await, Code::NotFound);
    let subject = lockgate_proto::v1::Subject { topic: "t".into(), ..Default::default() };
    assert_eq!(ask(lockgate_proto::v1::check_request::What::Subject(subject)).await, Code::PermissionDenied);
}

#[tokio::test]
async fn a_bad_wish_is_refused_with_its_field() {
    let server = Closed::start().await;
    for (body, field) in [
        (json!({ "actor": "a b", "roles": ["viewer"] }), "actor"),
        (json!({ "actor": "x", "roles": [] }), "roles"),
        (json!({ "actor": "x", "roles": ["king"] }), "roles"),
        (json!({ "actor": "x", "roles": ["worker", "admin"] }), "roles"),
        (json!({ "actor": "x", "roles": ["worker"], "tenant": "acme" }), "roles"),
        (json!({ "actor": "x", "roles": ["viewer"], "pools": ["gpu"] }), "pools"),
        (json!({ "actor": "x", "roles": ["viewer"], "lasts_ms": 0 }), "lasts_ms"),
        (json!({ "actor": "x", "roles": ["viewer"], "lasts_ms": u64::MAX }), "lasts_ms"),
    ] {
        let reply = server.post_as(&server.admin_key, "/v1/keys", &body).await;
        reply.is_problem(400, "invalid_argument");
        assert_eq!(reply.fields(), [field], "{body}");
    }
}

#[tokio::test]
async fn another_tenants_job_is_not_there() {
    let server = Closed::start().await;
    let (ours, theirs) = (server.key("operator", Some("ours")).await, server.key("operator", Some("theirs")).await);
    let made = server.post_as(&theirs, "/v1/jobs", &echo()).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.json["job_id"].as_str().expect("an id");
    for path in ["", "/why", "/logs", "/events"] {
        server.get_as(&ours, &format!("/v1/jobs/{id}{path}")).await.is_problem(404, "not_found");
    }
    server.post_as(&ours, &format!("/v1/jobs/{id}/cancel"), &json!({})).await.is_problem(404, "not_found");
    assert_eq!(server.get_as(&ours, "/v1/jobs").await.json["jobs"], json!([]));
    for tenant in ["*", "theirs"] {
        let path = format!("/v1/jobs?tenant={tenant}");
        server.get_as(&ours, &path).await.is_problem(403, "permission_denied");
        let path = format!("/v1/dead-letters?tenant={tenant}");
        server.get_as(&ours, &path).await.is_problem(403, "permission_denied");
    }
    assert_eq!(server.get_as(&theirs, &format!("/v1/jobs/{id}")).await.status, 200);
}

#[tokio::test]
async fn the_actor_is_whom_the_credential_names() {
    let server = Closed::start().await;
    let key = server.key("submitter", Some("acme")).await;
    let request = server.request("POST", "/v1/jobs").header("authorization", format!("bearer {key}"));
    let request = request.header("x-lockgate-actor", "somebody-else").header("content-type", "application/json");
    let id = server.send(request, echo().to_string()).await.json["job_id"].as_str().expect("an id").to_owned();
    let job = server.get_as(&key, &format!("/v1/jobs/{id}")).await;
    assert_eq!((&job.json["actor"], &job.json["tenant"]), (&json!("submitter-1"), &json!("acme")));
    assert_eq!(job.json["actor_verified"], true);
}

#[tokio::test]
async fn payloads_are_for_those_who_may_see_them() {
    let server = Closed::start().await;
    let (sees, not) = (server.key("submitter", Some("acme")).await, server.key_with("viewer", Some("acme"), false).await);
    let job = json!({ "topic": "job.echo", "payload": { "secret": "plum" }, "env": { "TOKEN": "plum" } });
    let id = server.post_as(&sees, "/v1/jobs", &job).await.json["job_id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/jobs/{id}");
    assert!(server.get_as(&sees, &path).await.text.contains("plum"));
    let hidden = server.get_as(&not, &path).await;
    assert_eq!(hidden.json["payload_hidden"], true, "{hidden:?}");
    for path in [path.as_str(), "/v1/jobs"] {
        let reply = server.get_as(&not, path).await;
        assert!(reply.status == 200 && !reply.text.contains("plum"), "{reply:?}");
    }
    server.get_as(&not, &format!("{path}/logs")).await.is_problem(403, "permission_denied");

    let mut client = server.grpc().await;
    let mut request = tonic::Request::new(lockgate_proto::v1::GetJobRequest { job_id: id });
    let bearer: MetadataValue<_> = format!("Bearer {not}").parse().expect("metadata");
    request.metadata_mut().insert("authorization", bearer);
    let job = client.get_job(request).await.expect("found").into_inner();
    assert!(job.payload_hidden && job.payload_json.is_empty() && job.env.is_empty(), "{job:?}");
}

#[tokio::test]
async fn a_worker_attaches_to_the_pools_of_its_credential_only() {
    let server = Closed::start().await;
    for (pools, expected) in [(json!([]), None), (json!(["default"]), None), (json!(["gpu"]), Some(Code::PermissionDenied))]
    {
        let body = json!({ "actor": "w", "roles": ["worker"], "pools": pools });
        let made = server.post_as(&server.admin_key, "/v1/keys", &body).await;
        let key = made.json["key"].as_str().expect("a key").to_owned();
        let first = lockgate_proto::v1::WorkerMessage { hello: Some(hello("s-1")), ..Default::default() };
        let messages = futures::StreamExt::chain(futures::stream::iter([first]), futures::stream::pending());
        let mut request = tonic::Request::new(messages);
        let bearer: MetadataValue<_> = format!("Bearer {key}").parse().expect("metadata");
        request.metadata_mut().insert("authorization", bearer);
        let mut client = lockgate_proto::v1::worker_client::WorkerClient::new(server.channel().await);
        let answer = client.attach(request).await;
        assert_eq!(answer.err().map(|status| status.code()), expected, "{pools}");
    }
}

#[tokio::test]
async fn a_server_that_asks_nobody_has_nothing_to_manage() {
    let server = Server::start().await;
    let me = server.get("/v1/whoami").await;
    assert_eq!((&me.json["actor"], &me.json["grant"]), (&json!("anonymous"), &json!(null)));
    let reply = server.post("/v1/keys", &json!({ "actor": "x", "roles": ["viewer"] })).await;
    reply.is_problem(409, "not_configured");
    assert!(reply.text.contains("--auth"), "{reply:?}");
    assert_eq!(reply.json["title"], "This server is not configured for it", "no other caller changed anything");
}

#[tokio::test]
async fn a_refused_act_is_on_record() {
    let server = Closed::start().await;
    let viewer = server.key("viewer", None).await;
    server.post_as(&viewer, "/v1/jobs", &echo()).await.is_problem(403, "permission_denied");
    server.post_as(&viewer, "/v1/jobs", &echo()).await.is_problem(403, "permission_denied");
    let audit = server.get_as(&server.admin_key, "/v1/audit?limit=1000").await;
    let rows = audit.json["rows"].as_array().expect("rows");
    let refused: Vec<_> = rows.iter().filter(|row| row["action"] == "access_refused").collect();
    assert_eq!(refused.len(), 1, "once a minute: {audit:?}");
    assert_eq!((&refused[0]["actor"], &refused[0]["subject"]), (&json!("viewer-1"), &json!("/v1/jobs")));
}

#[tokio::test]
async fn numbers_about_everybody_are_for_those_who_see_everybody() {
    let server = Closed::start().await;
    let (one, all) = (server.key("viewer", Some("acme")).await, server.key("viewer", None).await);
    let address = server.metrics(Closed::settings()).await;
    let at = |path: &str, key: Option<&str>| {
        let request = http::Request::builder().uri(format!("http://{address}{path}"));
        key.into_iter().fold(request, |request, key| request.header("authorization", format!("Bearer {key}")))
    };
    assert_eq!(server.send(at("/metrics", None), "").await.status, 401);
    assert_eq!(server.send(at("/metrics", Some(&one)), "").await.status, 403);
    let numbers = server.send(at("/metrics", Some(&all)), "").await;
    assert!(numbers.text.contains("lockgate_access_refused_total{code=\"unauthenticated\"} 1"), "{numbers:?}");
    assert_eq!(server.send(at("/healthz", None), "").await.status, 200);
}

#[tokio::test]
async fn the_last_key_of_an_administrator_cannot_be_revoked() {
    let server = Closed::start().await;
    let first = "0000000000000000";
    let revoke = async |key: &str, id: &str| server.post_as(key, &format!("/v1/credentials/{id}/revoke"), &json!({})).await;
    let id_of = |key: &str| key.split('_').nth(1).expect("an id").to_owned();
    // An administrator of one tenant cannot let others in.
    server.key("admin", Some("acme")).await;
    let refused = revoke(&server.admin_key, first).await;
    refused.is_problem(403, "permission_denied");
    assert!(refused.text.contains("lockgate auth key create"), "it says what to do: {refused:?}");
    assert_eq!(server.get_as(&server.admin_key, "/v1/jobs").await.status, 200);

    let second = server.key("admin", None).await;
    assert_eq!(revoke(&second, first).await.status, 200);
    revoke(&second, &id_of(&second)).await.is_problem(403, "permission_denied");
    // The old key of a rotation ends soon: it is not one that is left.
    let path = format!("/v1/keys/{}/rotate", id_of(&second));
    let rotated = server.post_as(&second, &path, &json!({ "overlap_ms": 60_000 })).await;
    let third = rotated.json["key"].as_str().expect("a key").to_owned();
    revoke(&third, &id_of(&third)).await.is_problem(403, "permission_denied");
    assert_eq!(revoke(&third, &id_of(&second)).await.status, 200, "what ends anyway may be ended");
}

#[tokio::test]
async fn of_two_administrators_who_revoke_each_other_one_is_left() {
    let server = Closed::start().await;
    let first = "0000000000000000";
    let second = server.key("admin", None).await;
    let id = second.split('_').nth(1).expect("an id").to_owned();
    let revoke = async |key: &str, id: &str| server.post_as(key, &format!("/v1/credentials/{id}/revoke"), &json!({})).await;
    let (one, other) = tokio::join!(revoke(&second, first), revoke(&server.admin_key, &id));
    let ended = [&one, &other].iter().filter(|reply| reply.status == 200).count();
    assert_eq!(ended, 1, "{one:?} {other:?}");
    let mut left = 0;
    for key in [&server.admin_key, &second] {
        left += usize::from(server.get_as(key, "/v1/jobs").await.status == 200);
    }
    assert_eq!(left, 1);
}

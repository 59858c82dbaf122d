//! The Helm chart, and the plain manifest that it renders to for those without Helm.

use std::path::PathBuf;

use crate::catalogue::Catalogue;
use crate::root;
use crate::tools::{check, run};

const CHART: &str = "deploy/helm/lockgate";
const MANIFEST: &str = "deploy/kubernetes/lockgate.yaml";

fn here(path: &str) -> PathBuf {
    root().expect("a root").join(path)
}

fn helm(arguments: &[&str]) -> String {
    check("helm", arguments)
}

fn rendered(more: &[&str]) -> String {
    helm(&[&["template", "lockgate", CHART], more].concat())
}

#[test]
fn the_plain_manifest_is_what_the_chart_renders_to() {
    helm(&["lint", "--strict", CHART]);
    let text = rendered(&[]);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(here(MANIFEST), &text).expect("written");
    }
    let written = std::fs::read_to_string(here(MANIFEST)).expect("the manifest");
    assert_eq!(written, text, "{MANIFEST} differs; UPDATE_EXPECT=1 rewrites it");
}

#[test]
fn autoscalers_ask_for_metrics_that_there_are() {
    let catalogue = Catalogue::read(&root().expect("a root")).expect("the reference");
    let adapter = std::fs::read_to_string(here("deploy/prometheus/adapter.yaml")).expect("the adapter's rules");
    let given: Vec<&str> = adapter.split("as: ").skip(1).filter_map(|rest| rest.split('}').next()).collect();
    assert!(
        catalogue.unknown(&adapter).iter().all(|name| given.contains(&name.as_str())),
        "{:?}",
        catalogue.unknown(&adapter)
    );
    let by_adapter = rendered(&[]);
    let asked: Vec<&str> = by_adapter.lines().filter_map(|line| line.strip_prefix("          name: lockgate_")).collect();
    assert_eq!(asked.len(), 4, "two workers with two metrics each: {asked:?}");
    assert!(asked.iter().all(|name| given.contains(&&*format!("lockgate_{name}"))), "{asked:?}, given {given:?}");

    let by_keda = rendered(&["--set", "autoscaling.kind=keda,autoscaling.keda.trigger=prometheus"]);
    assert!(by_keda.contains("kind: ScaledObject") && !by_keda.contains("kind: HorizontalPodAutoscaler"));
    let queries: Vec<&str> = by_keda.lines().filter_map(|line| line.trim().strip_prefix("query: ")).collect();
    assert_eq!(queries.len(), 4, "{queries:?}");
    for query in queries {
        assert_eq!(catalogue.unknown(query), [""; 0], "{query}");
    }
}

#[test]
fn workers_scale_by_priority_and_by_running_time_if_their_values_say_so() {
    let catalogue = Catalogue::read(&root().expect("a root")).expect("the reference");
    let own = "workers.worker-cpu.queuePerReplicaOf.high=50,workers.worker-cpu.runSecondsP95=2";
    let hpa = rendered(&["--set", own]);
    assert!(
        hpa.contains("name: lockgate_pool_priority_depth\n          selector: {matchLabels: {pool: cpu, priority: high}}"),
        "{hpa}"
    );
    assert!(hpa.contains("name: lockgate_pool_run_seconds_p95\n          selector: {matchLabels: {pool: cpu}}"), "{hpa}");
    let keda = rendered(&["--set", &format!("{own},autoscaling.kind=keda,autoscaling.keda.trigger=prometheus")]);
    for query in [
        "sum(lockgate:pool_priority_depth{pool=\"cpu\", priority=\"high\"})",
        "max(lockgate:pool_run_seconds:p95_5m{pool=\"cpu\"})",
    ] {
        assert!(keda.contains(&format!("query: {query}\n")), "{query}");
        assert_eq!(catalogue.unknown(query), [""; 0]);
    }
    let external = rendered(&["--set", &format!("{own},autoscaling.kind=keda,auth.existingSecret=")]);
    assert!(external.contains("pool: cpu\n        priority: high\n        waitingPerReplica: \"50\""), "{external}");
}

#[test]
fn keda_may_ask_the_gateways_or_redis() {
    let open = "autoscaling.kind=keda,auth.existingSecret=";
    let external = rendered(&["--set", open]);
    for part in [
        "type: external-push",
        "lockgate-gateway.default.svc:8080",
        "pool: cpu",
        "waitingPerReplica: \"100\"",
        "keda-operator",
    ] {
        assert!(external.contains(part), "{part} is missing");
    }
    // Words that the gateway reads; see crates/gateway/src/grpc/scaler.rs.
    let scaler = std::fs::read_to_string(here("crates/gateway/src/grpc/scaler.rs")).expect("the scaler");
    for word in ["\"pool\"", "\"waitingPerReplica\""] {
        assert!(scaler.contains(word), "{word}");
    }
    let closed = "autoscaling.kind=keda,tls.existingSecret=lockgate-tls,autoscaling.keda.certificateSecret=keda-cert";
    let closed = rendered(&["--set", closed]);
    assert!(
        closed.contains("tlsClientCert, name: keda-cert") && closed.contains("authenticationRef: {name: lockgate-keda}")
    );
    let redis = "autoscaling.kind=keda,autoscaling.keda.trigger=redis,autoscaling.keda.redisAddress=redis:6379";
    let redis = rendered(&["--set", redis]);
    assert!(redis.contains("listName: lockgate:queue:io") && redis.contains("address: redis:6379"), "{redis}");
}

#[test]
fn values_that_cannot_work_are_refused() {
    for (values, why) in [
        ("autoscaling.kind=sometimes", "hpa, keda or none"),
        ("autoscaling.kind=keda,autoscaling.keda.trigger=guess", "external, redis or prometheus"),
        ("autoscaling.kind=keda", "needs tls.existingSecret"),
        ("autoscaling.kind=keda,tls.existingSecret=t", "client certificate"),
        ("autoscaling.kind=keda,autoscaling.keda.trigger=redis", "redisAddress"),
    ] {
        let refused = run("helm", &["template", "lockgate", CHART, "--set", values]);
        let told = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && told.contains(why), "{values}: {told}");
    }
}

/// Every kind of object that the chart can render, against the schemas of Kubernetes, and of KEDA as far as the chart uses it.
#[test]
fn everything_that_the_chart_renders_is_what_kubernetes_expects() {
    let folder = std::env::temp_dir().join(format!("lockgate-charts-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let variants = [
        ("usual", ""),
        ("open", "auth.existingSecret=,autoscaling.kind=none"),
        ("tls", "tls.existingSecret=t"),
        ("keda-external", "autoscaling.kind=keda,tls.existingSecret=t,autoscaling.keda.certificateSecret=c"),
        (
            "keda-redis",
            "autoscaling.kind=keda,autoscaling.keda.trigger=redis,autoscaling.keda.redisAddress=r:1,autoscaling.keda.redisSecret=s",
        ),
        ("keda-prometheus", "autoscaling.kind=keda,autoscaling.keda.trigger=prometheus"),
    ];
    for (name, values) in variants {
        let (own, keda): (Vec<_>, Vec<_>) =
            objects(&rendered(&["--set", values])).into_iter().partition(|object| !object.contains("keda.sh/"));
        let (core, custom) = (folder.join(format!("{name}.yaml")), folder.join(format!("{name}-keda.yaml")));
        std::fs::write(&core, own.join("\n---\n")).expect("written");
        check("kubernetes-validate", &["--strict", "-k", "1.34", core.to_str().expect("UTF-8")]);
        for (at, object) in keda.iter().enumerate() {
            let path = custom.with_extension(format!("{at}.yaml"));
            std::fs::write(&path, object).expect("written");
            check("check-jsonschema", &["--schemafile", "deploy/helm/schemas/keda.json", path.to_str().expect("UTF-8")]);
        }
        assert_eq!(keda.is_empty(), !name.starts_with("keda"), "{name}");
    }
    std::fs::remove_dir_all(&folder).expect("gone");
}

/// The documents of a rendered chart that have something in them.
fn objects(text: &str) -> Vec<String> {
    let documents = text.split("\n---\n").map(|part| part.trim_start_matches("---\n").to_owned());
    documents.filter(|part| part.contains("kind: ")).collect()
}

#[test]
fn credentials_and_tls_are_as_the_values_say() {
    let usual = rendered(&[]);
    assert!(
        usual.contains("- --auth\n") && usual.contains("- --insecure-plaintext\n") && !usual.contains("--insecure-no-auth")
    );
    let tls = rendered(&["--set", "tls.existingSecret=lockgate-tls"]);
    assert!(
        tls.contains("--tls-cert=") && tls.contains("scheme: HTTPS") && tls.contains("value: https://lockgate-gateway:8080")
    );
    assert!(!tls.contains("--insecure-plaintext"));
    let open = rendered(&["--set", "auth.existingSecret="]);
    assert!(
        open.contains("--insecure-no-auth") && !open.contains("lockgate-auth") && !open.contains("--insecure-plaintext")
    );
}

//! The Helm chart, and the plain manifest that it renders to for those without Helm.

use std::path::PathBuf;
use std::process::Command;

use crate::catalogue::Catalogue;
use crate::root;

const CHART: &str = "deploy/helm/lockgate";
const MANIFEST: &str = "deploy/kubernetes/lockgate.yaml";

fn here(path: &str) -> PathBuf {
    root().expect("a root").join(path)
}

/// What `make servers` got, or what the machine has.
fn helm(arguments: &[&str]) -> String {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| here("target"), PathBuf::from);
    let own = target.join("servers/bin/helm");
    let program = if own.is_file() { own } else { PathBuf::from("helm") };
    let output = Command::new(program).args(arguments).current_dir(root().expect("a root")).output();
    let output = output.unwrap_or_else(|error| panic!("helm does not run ({error}); `make servers` gets it"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&[output.stdout, output.stderr].concat()));
    String::from_utf8(output.stdout).expect("text")
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

    let by_keda = rendered(&["--set", "autoscaling.kind=keda"]);
    assert!(by_keda.contains("kind: ScaledObject") && !by_keda.contains("kind: HorizontalPodAutoscaler"));
    let queries: Vec<&str> = by_keda.lines().filter_map(|line| line.trim().strip_prefix("query: ")).collect();
    assert_eq!(queries.len(), 4, "{queries:?}");
    for query in queries {
        assert_eq!(catalogue.unknown(query), [""; 0], "{query}");
    }
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

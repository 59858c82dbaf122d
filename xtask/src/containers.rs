//! The image and the compose file.

use crate::root;
use crate::tools::check;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().expect("a root").join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn the_image_holds_one_file_and_nobody_in_it_is_root() {
    check("hadolint", &["--failure-threshold", "warning", "deploy/Dockerfile"]);
    let dockerfile = text("deploy/Dockerfile");
    let (_, image) = dockerfile.split_once("FROM scratch\n").expect("nothing under it");
    assert!(image.contains("USER 10001:10001") && !image.contains("RUN "), "{image}");
    assert!(dockerfile.contains("+crt-static"), "nothing under it means no C library either");
    let serves = image.lines().find_map(|line| line.strip_prefix("CMD ")).expect("what it runs");
    assert!(serves.contains(r#""--listen", "0.0.0.0:8080""#), "a published port does not reach the loopback: {serves}");
    assert!(serves.contains(r#""--auth""#) && !serves.contains("no-auth"), "what can be reached asks who calls: {serves}");
}

#[test]
fn what_is_shipped_has_no_symbols() {
    let manifest = text("Cargo.toml");
    let (_, profile) = manifest.split_once("[profile.release]\n").expect("a profile");
    let profile = profile.split("\n[").next().unwrap_or_default();
    assert!(profile.contains("strip = true") && profile.contains("debug = false"), "{profile}");
}

#[test]
fn the_compose_file_is_one_and_its_services_are_bound() {
    check("check-jsonschema", &["--builtin-schema", "vendor.compose-spec", "deploy/compose.yaml"]);
    let compose = text("deploy/compose.yaml");
    for service in ["database:", "redis:", "nats:", "gateway-1:", "scheduler-1:", "worker-1:", "prometheus:", "grafana:"] {
        assert!(compose.contains(&format!("\n  {service}")), "{service}");
    }
    for port in compose.lines().filter_map(|line| line.trim().strip_prefix("ports: ")) {
        assert!(port.starts_with("[\"127.0.0.1:"), "not for other machines: {port}");
    }
    assert!(compose.contains("read_only: true") && compose.contains("cap_drop: [ALL]"));
}

#[test]
fn the_database_is_out_of_reach_of_workers_and_monitoring_and_settings_are_in_a_file() {
    let compose = text("deploy/compose.yaml");
    let (anchors, services) = compose.split_once("\nservices:").expect("services");
    let networks = |part: &str, section: &str| {
        let (_, rest) = part.split_once(&format!("\n{section}")).unwrap_or_else(|| panic!("{section} is there"));
        let line = rest.lines().find_map(|line| line.trim().strip_prefix("networks: ")).expect("its networks");
        line.to_owned()
    };
    for server in ["  database:", "  redis:", "  nats:"] {
        assert_eq!(networks(services, server), "[servers]", "{server}");
    }
    for outside in ["  prometheus:", "  grafana:"] {
        assert_eq!(networks(services, outside), "[monitoring]", "{outside}");
    }
    assert_eq!(networks(anchors, "x-worker:"), "[api]");
    assert!(compose.contains("servers: {internal: true}"));
    let settings = text("deploy/compose.env");
    for name in ["DATABASE_URL", "REDIS_URL", "NATS_URL"] {
        assert!(settings.lines().any(|line| line.starts_with(&format!("{name}="))), "{name}");
        assert!(!compose.contains(name), "{name} is said in one place");
    }
}

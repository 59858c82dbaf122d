//! What a server takes from its surroundings: the folder config, and variables.

use serde_json::json;

use crate::support::{Files, Server, offline_with};

const POOLS: &str = "topics: {job.echo: echo, job.noop: default}\npools: {echo: {}, default: {}}\n";
const TIMEOUTS: &str = "defaults: {running: 7s}\n";
const SAFETY: &str = "version: 1\ndefault: {decision: deny, reason: as the file says}\n";

/// A folder to start a server in, with these files in its folder config.
fn folder(files: &[(&str, &str)]) -> Files {
    let folder = Files::new();
    std::fs::create_dir(folder.path().join("config")).expect("made");
    for (name, text) in files {
        folder.write(&format!("config/{name}"), text);
    }
    folder
}

#[test]
fn files_of_the_folder_config_count_and_the_banner_names_them() {
    let folder = folder(&[("pools.yaml", POOLS), ("timeouts.yaml", TIMEOUTS), ("safety.yaml", SAFETY)]);
    let server = Server::start_with(|command| command.current_dir(folder.path()));
    let named = json!(["config/safety.yaml", "config/pools.yaml", "config/timeouts.yaml"]);
    assert_eq!(server.banner["config_files"], named);
    for (kind, text) in [("pools", POOLS), ("timeouts", TIMEOUTS)] {
        assert_eq!(server.get(&format!("/v1/config/{kind}"))["text"], text);
    }
    let denied = server.run(&["submit", "job.noop", "--wait"]);
    assert!(denied.stderr().contains("safety_denied: as the file says"), "{}", denied.stderr());
}

#[test]
fn a_pools_file_of_topics_alone_is_a_whole_file() {
    let folder = folder(&[("pools.yaml", "topics: {job.echo: echo}\n")]);
    let server = Server::start_with(|command| command.current_dir(folder.path()));
    let pools = server.get("/v1/pools");
    assert_eq!((&pools["pools"][0]["name"], pools["pools"].as_array().map(Vec::len)), (&json!("echo"), Some(1)), "{pools}");
}

#[test]
fn an_option_wins_over_the_folder_config_and_no_config_leaves_it_alone() {
    let folder = folder(&[("pools.yaml", "topics: {job.echo: echo}\npools: {echo: {}}\n"), ("safety.yaml", SAFETY)]);
    let other = folder.write("other.yaml", POOLS);
    let server = Server::start_with(|command| command.current_dir(folder.path()).args(["--pools", &other, "--no-config"]));
    assert_eq!(server.banner["config_files"], json!(null));
    assert_eq!(server.get("/v1/config/pools")["text"], POOLS);
    assert_eq!(server.run(&["submit", "job.noop", "--wait"]).code(), Some(0));
}

/// As in a compose file that hands on what its own environment has.
#[test]
fn a_variable_set_to_nothing_is_not_set() {
    const EMPTY: [&str; 8] = [
        "LOCKGATE_POLICY",
        "POLICY_CHECK_FAIL_MODE",
        "POLICY_CHECK_FAIL_OPEN_UNTIL",
        "OUTPUT_POLICY_ENABLED",
        "POOL_CONFIG_PATH",
        "DATABASE_URL",
        "NATS_URL",
        "LOCKGATE_INSTALLATION",
    ];
    let server = Server::start_with(|command| command.envs(EMPTY.map(|name| (name, ""))));
    assert_eq!(server.run(&["submit", "job.noop", "--wait"]).code(), Some(0));
}

#[test]
fn switches_and_modes_are_read_as_people_write_them() {
    let shown = |name: &str, value: &str| offline_with(&[(name, value)], &["config", "show", "--json"]);
    for (name, value) in [
        ("OUTPUT_POLICY_ENABLED", "1"),
        ("OUTPUT_POLICY_ENABLED", "TRUE"),
        ("OUTPUT_POLICY_ENABLED", "no"),
        ("POLICY_CHECK_FAIL_MODE", "OPEN"),
        ("POLICY_CHECK_FAIL_MODE", "Closed"),
    ] {
        let answer = shown(name, value);
        assert_eq!(answer.code(), Some(0), "{name}={value}: {}", answer.stderr());
    }
    let refused = shown("OUTPUT_POLICY_ENABLED", "perhaps");
    assert!(refused.stderr().contains("--output-policy"), "{}", refused.stderr());
    let alone = [("POLICY_CHECK_FAIL_OPEN_UNTIL", "2030-01-31T08:00:00Z")];
    let refused = offline_with(&alone, &["serve", "--listen", "127.0.0.1:0"]);
    assert!(refused.stderr().contains("POLICY_CHECK_FAIL_MODE=open"), "{}", refused.stderr());
}

/// The switch from open to closed at that time is a scenario of the engine.
#[test]
fn a_fail_mode_opened_by_variable_is_closed_once_its_time_has_passed() {
    let state = |until: &str| {
        let server = Server::start_with(|command| {
            command
                .args(["--safety-kernel", "127.0.0.1:1", "--safety-kernel-insecure"])
                .envs([("POLICY_CHECK_FAIL_MODE", "open"), ("POLICY_CHECK_FAIL_OPEN_UNTIL", until)])
        });
        server.run(&["submit", "job.noop", "--json"]).json()["state"].clone()
    };
    assert_eq!(state("2126-01-31T08:00:00Z"), "SCHEDULED");
    assert_eq!(state("2020-01-31T08:00:00Z"), "PENDING");
}

//! What a script sees when something is wrong before any server is asked.

use std::process::{Command, Output};

fn lockgate(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lockgate")).args(words).env_remove("LOCKGATE_SERVER").output().expect("runs")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Nothing listens on a port that was free a moment ago.
fn dead_server() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

#[test]
fn wrong_usage_exits_with_1() {
    for words in [&["submit"][..], &["no-such-command"], &["jobs", "--limit", "0"], &["jobs", "--state", "DONE"]] {
        let output = lockgate(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(stderr(&output).contains("error:"), "{words:?}");
    }
}

#[test]
fn a_worker_names_the_flag_that_makes_no_sense() {
    for value in ["job.sleep", "job.sleep=maybe", "no.such.topic=stop"] {
        let output = lockgate(&["worker", "--on-lease-loss", value]);
        assert_eq!(output.status.code(), Some(1), "{value}");
        let text = stderr(&output);
        assert!(text.contains("--on-lease-loss") && text.contains(value.trim_end_matches("=stop")), "{text}");
    }
}

#[test]
fn faults_that_make_no_sense_are_refused_with_the_name_of_the_flag() {
    for (command, flag, value) in [
        ("worker", "--faults", "error=2"),
        ("worker", "--faults", "moon=0.1"),
        ("worker", "--faults", "slow=0.1"),
        ("serve", "--worker-faults", "error"),
    ] {
        let output = lockgate(&[command, flag, value]);
        assert_eq!(output.status.code(), Some(1), "{value}");
        let text = stderr(&output);
        assert!(text.contains(flag) && text.contains(value), "{text}");
    }
}

#[test]
fn a_limit_of_the_disk_that_makes_no_sense_is_refused() {
    let refusal = |words: &[&str]| {
        let output = lockgate(&[&["serve", "--disk-limit"][..], words].concat());
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        stderr(&output)
    };
    assert!(refusal(&["much"]).contains("--disk-limit"));
    assert!(refusal(&["1K"]).contains("--disk-limit must be at least 1M"));
    let cluster = ["10M", "--database-url", "postgres://a", "--redis-url", "redis://b", "--nats-url", "nats://c"];
    assert!(refusal(&cluster).contains("--disk-limit is for a folder of its own"));
}

#[test]
fn a_server_does_not_start_with_a_safety_kernel_that_is_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display().to_string();
    let anywhere = ["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"];
    let output = lockgate(&[&["serve", "--data", &data, "--safety-kernel", "garbage"][..], &anywhere].concat());
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("\"garbage\" is no address; write host:port"), "{}", stderr(&output));
}

#[test]
fn help_and_version_are_answers() {
    for words in [&["--help"][..], &["--version"], &["submit", "--help"]] {
        let output = lockgate(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(!output.stdout.is_empty() && output.stderr.is_empty(), "{words:?}");
    }
}

#[test]
fn an_unreachable_server_exits_with_3_and_says_what_to_do() {
    let output = lockgate(&["--server", &dead_server(), "queues"]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.contains("cannot reach http://127.0.0.1:") && text.contains("`lockgate serve`"), "{text}");
}

#[test]
fn programs_get_errors_as_json() {
    let output = lockgate(&["--server", &dead_server(), "--json", "get", "a"]);
    assert_eq!(output.status.code(), Some(3));
    let text = stderr(&output);
    assert!(text.starts_with(r#"{"code":"unreachable","#), "{text}");
}

#[test]
fn an_address_that_is_none_is_refused() {
    let output = lockgate(&["--server", "not an address", "queues"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("is not an address"), "{}", stderr(&output));
}

#[test]
fn completions_are_printed_without_a_server() {
    let output = lockgate(&["completions", "bash"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("_lockgate()"));
}

#[test]
fn a_manual_page_is_written_for_every_command() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("man1");
    let output = lockgate(&["man", &folder.display().to_string()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for (page, part) in [("lockgate.1", "Exit codes:"), ("lockgate-dlq-replay.1", ".TH lockgate-dlq-replay 1")] {
        let text = std::fs::read_to_string(folder.join(page)).expect("a page");
        assert!(text.contains(part), "{page}: {text}");
    }
    let taken = lockgate(&["man", &folder.join("lockgate.1").display().to_string()]);
    assert_eq!(taken.status.code(), Some(1));
    assert!(stderr(&taken).contains("cannot write to "), "{}", stderr(&taken));
}

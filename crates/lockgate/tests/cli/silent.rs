//! Servers that accept a connection and then say nothing, or too little: every command ends by itself and says why.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use tokio::time::Instant;

use crate::support::{Files, lockgate};

/// How much such a server says.
#[derive(Clone, Copy, PartialEq)]
enum Says {
    Nothing,
    /// It speaks HTTP/2 and answers pings, and no call.
    Pings,
    /// It also begins an answer to every call, and never ends it.
    Heads,
}

/// The address of such a server. It lives as long as the test.
fn silent(says: Says) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().map_while(Result::ok) {
            match says {
                Says::Nothing => held.push(stream),
                Says::Pings | Says::Heads => drop(thread::spawn(move || speak(stream, says))),
            }
        }
    });
    format!("http://{address}")
}

/// As little HTTP/2 as it takes. Ends with the connection.
fn speak(mut stream: TcpStream, says: Says) -> Option<()> {
    const PREFACE: usize = 24;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const PING: u8 = 6;
    let mut send = stream.try_clone().ok()?;
    let mut frame = |kind: u8, flags: u8, stream: [u8; 4], body: &[u8]| {
        let length = u8::try_from(body.len()).expect("short");
        let head = [0, 0, length, kind, flags, stream[0], stream[1], stream[2], stream[3]];
        send.write_all(&[&head, body].concat()).ok()
    };
    stream.read_exact(&mut [0; PREFACE]).ok()?;
    frame(SETTINGS, 0, [0; 4], &[])?;
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).ok()?;
        let mut body = vec![0; usize::from(head[1]) * 256 + usize::from(head[2])];
        stream.read_exact(&mut body).ok()?;
        let is_answer = head[4] & 1 == 1;
        match head[3] {
            SETTINGS if !is_answer => frame(SETTINGS, 1, [0; 4], &[])?,
            PING if !is_answer => frame(PING, 1, [0; 4], &body)?,
            HEADERS if says == Says::Heads => {
                let text = b"application/grpc";
                // `:status: 200`, and `content-type` with a text of its own.
                let fields = [&[0x88, 0x5f, 16][..], text].concat();
                frame(HEADERS, 4, [head[5], head[6], head[7], head[8]], &fields)?;
            }
            _ => {}
        }
    }
}

struct Running {
    words: Vec<String>,
    child: Child,
}

fn start(server: &str, timeout: &str, words: &[&str]) -> Running {
    let child = lockgate()
        .args(["--server", server, "--call-timeout", timeout])
        .args(words)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    Running { words: words.iter().map(|word| (*word).to_owned()).collect(), child }
}

/// Waits for commands to end by themselves: what each said, and its exit code. What has not ended in time is ended and told.
#[expect(clippy::disallowed_methods, reason = "processes are asked again and again until a deadline")]
fn wait_for_ends(running: Vec<Running>, within: Duration) -> Vec<(String, Option<i32>, String)> {
    let deadline = Instant::now() + within;
    let ended = running.into_iter().map(|Running { words, mut child }| {
        while child.try_wait().expect("asked").is_none() {
            if Instant::now() >= deadline {
                child.kill().expect("killed");
                break;
            }
            thread::sleep(Duration::from_millis(20));
        }
        let output = child.wait_with_output().expect("ended");
        let said = [output.stdout, output.stderr].concat();
        (words.join(" "), output.status.code(), String::from_utf8_lossy(&said).into_owned())
    });
    ended.collect()
}

/// One line for every command that asks a server. `FILE.…` stands for a file with something good in it.
const ASKING: &str = "\
approvals approve j
approvals list
approvals reject j
approvals show j
audit export
audit list
audit verify
auth certificate bind CN=x --name x --role viewer
auth certificate list
auth certificate revoke x
auth key create x --role viewer
auth key list
auth key revoke x
auth key rotate x
auth whoami
breaker
cancel j
dag apply FILE.dag
dag cancel r
dag get r
dag graph d
dag list
dag pause r
dag rerun r --from a
dag resolve r a
dag resume r
dag runs
dag show d
dag start d
dag watch r
dlq discard j --reason r
dlq list
dlq replay j
dlq show j
doctor
get j
health
jobs
load --jobs 1
logs j
policy apply FILE.policy
policy diff FILE.policy FILE.policy
policy explain --job j
policy list
policy rollback x
policy show
policy simulate --policy FILE.policy
pools apply FILE.pools
pools drain p
pools history
pools list
pools pause p
pools resume p
pools rollback x
pools show
queues
quotas apply FILE.quotas
quotas history
quotas rollback x
quotas show
release j
retry j
saga list
saga resolve w j
saga rollback w
saga show w
schedule apply FILE.schedule
schedule backfill s --from 2026-01-01T00:00:00Z --to 2026-01-02T00:00:00Z
schedule cancel-backfill s b
schedule list
schedule pause s
schedule remove s
schedule resume s
schedule show s
schedule slots s
schedule trigger s
submit job.noop --wait
tenants erase t --yes
tenants list
timeouts apply FILE.timeouts
timeouts history
timeouts rollback x
timeouts show
top
watch j
why j
workers drain w
workers list";

/// Commands that ask no server, or are servers or workers themselves and go on for as long as they run.
const ALONE: [&str; 22] = [
    "backup",
    "bench",
    "chaos",
    "completions",
    "config show",
    "dag lint",
    "man",
    "migrate",
    "policy check",
    "policy schema",
    "policy test",
    "pools lint",
    "pools schema",
    "quotas lint",
    "quotas schema",
    "restore",
    "schedule lint",
    "schedule next",
    "serve",
    "timeouts lint",
    "timeouts schema",
    "worker",
];

/// The names of all commands that can be run, from the expected help texts.
fn all_commands() -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
    let texts = std::fs::read_dir(folder)
        .expect("the folder")
        .map(|entry| std::fs::read_to_string(entry.expect("an entry").path()).expect("text"));
    let usage = |text: String| text.lines().find_map(|line| line.strip_prefix("Usage: lockgate ")).map(str::to_owned);
    let name = |usage: String| usage.split(" [OPTIONS]").next().unwrap_or_default().to_owned();
    let all = texts.filter_map(usage).filter(|usage| !usage.contains("<COMMAND>") && !usage.starts_with('[')).map(name);
    all.collect()
}

#[test]
fn every_command_ends_by_itself_when_the_server_never_answers() {
    for command in all_commands() {
        let asks = ASKING.lines().any(|line| line == command || line.starts_with(&format!("{command} ")));
        assert!(asks != ALONE.contains(&command.as_str()), "{command}: is it to be tried here?");
    }
    let files = Files::new();
    let text = |kind: &str| match kind {
        "dag" => "version: 1\ndag: d\nnodes: {a: {topic: job.noop}}\n",
        "policy" => "version: 1\ndefault: {decision: allow}\n",
        "pools" => "topics: {\"*\": p}\npools: {p: {}}\n",
        "quotas" => "defaults: {jobs: 3}\n",
        "schedule" => "version: 1\nschedules: {s: {every: 1m, job: {topic: job.noop}}}\n",
        _ => "topics: {job.noop: {running: 5s}}\n",
    };
    let server = silent(Says::Nothing);
    let run = |line: &str| {
        let word = |word: &str| match word.strip_prefix("FILE.") {
            Some(kind) => files.write(&format!("{kind}.yaml"), text(kind)),
            None => word.to_owned(),
        };
        let words: Vec<String> = line.split(' ').map(word).collect();
        start(&server, "2s", &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    // Those that follow something bear with a server that is away for half a minute.
    for (words, code, said) in wait_for_ends(ASKING.lines().map(run).collect(), Duration::from_secs(55)) {
        assert!(matches!(code, Some(3 | 5)), "{words} ended with {code:?}: {said}");
        assert!(said.contains(&format!("cannot reach {server}: ")), "{words}: {said}");
    }
}

#[test]
fn a_server_that_answers_pings_only_or_begins_an_answer_is_not_waited_for_either() {
    let (pings, heads) = (silent(Says::Pings), silent(Says::Heads));
    let running = vec![
        start(&pings, "100ms", &["queues"]),
        start(&heads, "100ms", &["queues"]),
        start(&heads, "100ms", &["submit", "job.noop"]),
        start(&pings, "100ms", &["audit", "verify"]),
        start(&pings, "100ms", &["dlq", "replay", "--all"]),
    ];
    for (words, code, said) in wait_for_ends(running, Duration::from_secs(50)) {
        assert_eq!(code, Some(3), "{words}: {said}");
        assert!(said.contains("no answer within ") && said.contains("--call-timeout"), "{words}: {said}");
    }
}

#[test]
fn a_tls_handshake_that_is_never_answered_ends_by_itself() {
    let server = silent(Says::Nothing).replace("http://", "https://");
    for (words, code, said) in wait_for_ends(vec![start(&server, "100ms", &["queues"])], Duration::from_secs(50)) {
        assert_eq!(code, Some(3), "{words}: {said}");
        assert!(said.contains(&format!("cannot reach {server}: ")), "{words}: {said}");
    }
}

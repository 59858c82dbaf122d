//! How fast the built-in scanners are: `cargo run --release -p lockgate-core --example scan_speed`.
//!
//! Prints MB/s over a mebibyte of JSON, clean and with hits, and over texts made to wake one rule at every step.

use std::fmt::Write;

use lockgate_core::scan::{FindingKey, Scanners};

const BYTES: usize = 1 << 20;
const ROUNDS: usize = 15;
const HIT_EVERY: usize = 4096;

/// Heads of tokens; a rotation of them keeps every rule below its limit.
const HEADS: [&str; 9] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "npm_", "hvs.", "glpat-", "ya29."];
const BODY: &str = "Ab3dEf7hIj1lMn5pQr9tUv2xYz4BcD6fGh8J";

/// None of these may cost so much more than another that it could be used as an attack.
const WAKING: [&str; 20] = [
    "@",
    "a@",
    "+1",
    "://a:",
    "token=",
    "password: ",
    "secret_",
    "-----BEGIN ",
    "eyJaaaaaaaa.",
    "sk-",
    "ghp_a",
    "curl ",
    "curl |",
    "ignore all ",
    "`",
    "' or ",
    "4111 ",
    "DE89 ",
    "\\n",
    "\\u0040",
];

/// Rows as services return them: ids, times, names, numbers, links, prose; with `hits`, a token every few of them.
fn rows(hits: bool) -> String {
    let mut text = String::from("[");
    let mut tokens = 0;
    for row in 0.. {
        if text.len() >= BYTES {
            break;
        }
        let _ = write!(
            text,
            "{{\"id\":\"{row:08x}-3f1c-4a7e-9b2d-5c6e7f80{row:04x}\",\"created_at\":\"2024-11-15T23:31:{:02}.123Z\",",
            row % 60
        );
        let _ = write!(text, "\"name\":\"Item number {row}\",\"price\":{row}.25,\"tags\":[\"blue\",\"large\",\"stock\"],");
        let _ = write!(text, "\"link\":\"https://shop.example/items/{row}?ref=home\",");
        text.push_str("\"note\":\"Sent with the usual carrier, please check the box on arrival.\"},");
        if hits && text.len() >= (tokens + 1) * HIT_EVERY {
            let _ = write!(text, "{{\"key\":\"{}{BODY}\"}},", HEADS[tokens % HEADS.len()]);
            tokens += 1;
        }
    }
    text.push_str("null]");
    text
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the real clock")]
fn measure(label: &str, text: &str, run: impl Fn(&str) -> usize) {
    let mut found = 0;
    let mut seconds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = std::time::Instant::now();
            found = run(text);
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let rate = |seconds: f64| text.len() as f64 / seconds / 1e6;
    println!(
        "{label:<28} median {:>4.0} MB/s, best {:>4.0} MB/s, {found} found",
        rate(seconds[ROUNDS / 2]),
        rate(seconds[0])
    );
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scanners = Scanners::builtin();
    let selection = scanners.select(&["secrets", "pii", "injection"])?;
    let key = FindingKey::new([7; 32]);
    let scan = |text: &str| scanners.scan(&selection, text, &key).findings.len();
    let clean = rows(false);
    measure("clean JSON", &clean, scan);
    measure("clean JSON, escapes in rows", &clean.replace("carrier, ", "carrier,\\n"), scan);
    measure("a hit every 4 KiB", &rows(true), scan);
    measure("hits() on clean JSON", &clean, |text| usize::from(scanners.hits(&selection, text)));
    for piece in WAKING {
        measure(&format!("{piece:?} repeated"), &piece.repeat(BYTES / piece.len()), scan);
    }
    Ok(())
}

//! Tests of the scanners.

mod injection;
mod json;
mod lookalikes;
mod pii;
mod properties;
mod secrets;
mod selecting;

use super::{Finding, FindingKey, ScanReport, Scanners, Selection};

const KEY: FindingKey = FindingKey::new([7; 32]);

fn everything() -> Selection {
    Scanners::builtin().select(&["secrets", "pii", "injection"]).expect("the groups exist")
}

fn scan(text: &str) -> ScanReport {
    Scanners::builtin().scan(&everything(), text, &KEY)
}

/// Each finding as its rule and its text.
fn found(text: &str) -> Vec<(String, String)> {
    let shown = |finding: &Finding| (finding.rule.to_string(), text[finding.offset..finding.end()].to_owned());
    scan(text).findings.iter().map(shown).collect()
}

fn rules(text: &str) -> Vec<String> {
    found(text).into_iter().map(|(rule, _)| rule).collect()
}

/// Writes out a sample: `{A36}` becomes 36 letters and digits, `{U…}` upper-case ones, `{l…}` lower-case ones, `{h…}` hex
/// digits, `{d…}` digits. No token stands in this source, so no other scanner mistakes it for a leak.
fn sample(template: &str) -> String {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, tail)) = rest.split_once('{') {
        let (token, after) = tail.split_once('}').expect("a closed brace");
        let alphabet: &[u8] = match &token[..1] {
            "A" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
            "U" => b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789",
            "l" => b"abcdefghijklmnopqrstuvwxyz0123456789",
            "h" => b"0123456789abcdef",
            _ => b"1234567890",
        };
        out.push_str(before);
        for _ in 0..token[1..].parse::<usize>().expect("a length") {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            out.push(char::from(alphabet[(state >> 33) as usize % alphabet.len()]));
        }
        rest = after;
    }
    out + rest
}

//! What letting JSON in costs: `cargo run --release -p lockgate-core --example json_speed`.
//!
//! Beside it what it replaced: a check of the syntax at the door, and parsing and writing for the hash.

use std::hint::black_box;
use std::time::Instant;

use lockgate_core::request::Json;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

fn orders(bytes: usize) -> Value {
    let order =
        |n: usize| json!({"amount": 12.5 + n as f64 / 7.0, "id": n, "note": "to be sent \"soon\"", "to": "ann@example.com"});
    let one = order(0).to_string().len() + 1;
    json!({ "orders": (0..bytes / one).map(order).collect::<Vec<_>>(), "tenant": "acme" })
}

/// As many clients write it: names in the order of their fields, spaces after `:` and `,`.
fn spaced(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Value::Object(entries) => {
            let entry = |(name, value): (&String, &Value)| format!("{}: {}", json!(name), spaced(value));
            format!("{{{}}}", entries.iter().rev().map(entry).collect::<Vec<_>>().join(", "))
        }
        leaf => leaf.to_string(),
    }
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the real clock")]
fn micros(bytes: usize, work: impl Fn()) -> f64 {
    let rounds = 20_000_000 / bytes;
    let mut best = f64::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        (0..rounds).for_each(|_| work());
        best = best.min(began.elapsed().as_secs_f64() * 1e6 / rounds as f64);
    }
    best
}

fn main() {
    for bytes in [200, 10_000] {
        let value = orders(bytes);
        for (form, text) in [("canonical", value.to_string()), ("as clients write it", spaced(&value))] {
            let taken = micros(bytes, || drop(black_box(Json::parse(black_box(&text)))));
            let before = micros(bytes, || {
                let checked = serde_json::from_str::<IgnoredAny>(black_box(&text)).is_ok();
                let hashed = serde_json::from_str::<Value>(black_box(&text)).map(|value| value.to_string());
                drop(black_box((checked, hashed)));
            });
            println!("{:>7} bytes, {form}: {taken:.1} us; before: {before:.1} us", text.len());
        }
    }
}

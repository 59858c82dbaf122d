//! What fills ordinary payloads and must pass.

use super::{found, rules, sample};

const HARMLESS: [&str; 56] = [
    "{h8}-{h4}-4{h3}-a{h3}-{h12}",
    "{\"id\":\"{h8}-{h4}-{h4}-{h4}-{h12}\",\"sha\":\"{h40}\",\"sha256\":\"{h64}\"}",
    "md5 {h32}",
    "sha256:{h64}",
    "commit {h40}",
    "{\"etag\":\"{h32}\"}",
    "data:image/png;base64,iVBORw0KGgo{A400}==",
    "\"image\":\"/9j/4AAQSkZJRg{A300}\"",
    "{\"created_at\":1731712307123,\"us\":1731712307123456,\"ns\":1731712307123456789}",
    "2024-11-15T23:31:47.123456+01:00",
    "order 4012-8888-0000-1234-5678-99",
    "tracking 1Z999AA10123456784",
    "{\"order\":\"ORD-2024-0011223344556677\"}",
    "snowflake 1162030405060708091",
    "twitter 1590000000000000001",
    "isbn 978-3-16-148410-0",
    "ean 4006381333931",
    "{\"lat\":48.8583701,\"lon\":2.2944813,\"x\":0.4111111111111111}",
    "ratio 4111111111111111.5",
    "uuid 00000000-4111-1111-1111-111111111111",
    "{\"password\":\"\"}",
    "{\"password\":null,\"secret\":true,\"token\":12345678901234567890}",
    "password = os.environ['DB_PASSWORD']",
    "password: ${DB_PASSWORD}",
    "token = get_token(user_id=12, scope='read')",
    "\"api_key\": \"<your-api-key-here-12345>\"",
    "secret_name: projects/prod/secrets/db-password-2024",
    "{\"next_page_token\":\"{A60}\",\"continuation_token\":\"{A40}\"}",
    "{\"token_count\":4096,\"max_tokens\":128000,\"total_tokens\":1234567890}",
    "{\"token_type\":\"bearer\",\"secret_arn\":\"arn:aws:secretsmanager:eu-west-1:123456789012:secret:x-AbC123\"}",
    "{\"idempotency_key\":\"{h8}-{h4}-{h4}-{h4}-{h12}\"}",
    "{\"api_key\":\"{h8}-{h4}-{h4}-{h4}-{h12}\"}",
    "{\"public_token\":\"{A40}\"}",
    "the password must have 12 characters, one digit and one symbol!",
    "Passwords: see the Wiki-page, section 4.2!",
    "https://example.com:8443/path?x=1&y=2",
    "https://user@example.com/path",
    "git@github.com:org/repo.git",
    "npm i @types/node@20.1.0 lodash@4.17.21",
    "icon@2x.png",
    "user@localhost",
    "systemd user@1000.service",
    "a @ b . c",
    "@decorator def f(): pass",
    "1 + 12345678",
    "x+1234567890",
    "1e+1234567890",
    "GMT+0100 and UTC+05:30",
    "task-proj-list risk-free disk-usage-percent",
    "npm_config_registry=https://registry.npmjs.org npm_package_version=1.2.3",
    "msg.payload.value.of.something.very.long.indeed",
    "sk_live_ and sk-proj- are prefixes, AKIA too",
    "DE is a country, GB82 a start, NL91 ABNA another",
    "123-45-678 and 12-345-6789 and 2024-11-1500",
    "AB12CD34EF56GH78IJ90KL12MN34",
    "eyJhbGciOiJIUzI1NiJ9 alone is a header",
];

#[test]
fn ordinary_values_are_no_findings() {
    for template in HARMLESS {
        let text = expand(template);
        assert_eq!(found(&text), [], "{text}");
    }
}

/// Braces of JSON are not placeholders here: only a letter and digits between braces are.
fn expand(template: &str) -> String {
    let pattern = regex::Regex::new(r"\{[AUlhd][0-9]+\}").expect("a pattern");
    let mut salt = 0;
    pattern
        .replace_all(template, |found: &regex::Captures<'_>| {
            salt += 1;
            sample(&format!("{{h{salt}}}{}", &found[0]))[salt..].to_owned()
        })
        .into_owned()
}

#[test]
fn random_base64_holds_no_secret() {
    let text = sample("{A200000}");
    for chunk in text.as_bytes().chunks(400) {
        let line = format!("{{\"body\":\"{}\"}}", std::str::from_utf8(chunk).expect("letters"));
        assert_eq!(rules(&line), [""; 0], "{line}");
    }
}

#[test]
fn random_ids_of_nineteen_digits_are_no_cards() {
    let digits = sample("{d38000}");
    for id in digits.as_bytes().chunks(19) {
        let text = format!("{{\"id\":{},\"n\":1}}", std::str::from_utf8(id).expect("digits"));
        assert_eq!(rules(&text), [""; 0], "{text}");
    }
}

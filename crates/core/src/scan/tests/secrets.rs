//! Every secret rule finds its thing, wherever it stands, and nothing that only looks like it.

use std::collections::BTreeSet;

use super::{found, rules, sample};
use crate::scan::{FindingKind, Scanners};

/// Rule, and a token in the form its issuer gives out.
const TOKENS: [(&str, &str); 88] = [
    ("aws_access_key", "AKIA{U16}"),
    ("aws_access_key", "ASIA{U16}"),
    ("aws_bedrock_key", "ABSK{A120}=="),
    ("gcp_api_key", "AIza{A35}"),
    ("gcp_oauth_token", "ya29.{A60}"),
    ("gcp_oauth_secret", "GOCSPX-{A28}"),
    ("azure_client_secret", "{A3}8Q~{A34}"),
    ("azure_devops_token", "{A76}AZDO{A4}"),
    ("digitalocean_token", "dop_v1_{h64}"),
    ("heroku_token", "HRKU-AA{A58}"),
    ("cloudflare_origin_key", "v1.0-{h24}-{h146}"),
    ("alibaba_access_key", "LTAI{A20}"),
    ("vault_token", "hvs.{A90}"),
    ("vault_token", "hvb.{A140}"),
    ("terraform_cloud_token", "{A14}.atlasv1.{A64}"),
    ("pulumi_token", "pul-{h40}"),
    ("doppler_token", "dp.pt.{A43}"),
    ("doppler_token", "dp.st.dev.{A43}"),
    ("databricks_token", "dapi{h32}"),
    ("planetscale_token", "pscale_tkn_{A43}"),
    ("supabase_key", "sbp_{h40}"),
    ("supabase_key", "sb_secret_{A31}"),
    ("tailscale_key", "tskey-auth-{A12}-{A32}"),
    ("github_pat", "ghp_{A36}"),
    ("github_fine_grained_pat", "github_pat_{A22}_{A59}"),
    ("github_oauth_token", "gho_{A36}"),
    ("github_user_token", "ghu_{A36}"),
    ("github_server_token", "ghs_{A36}"),
    ("github_refresh_token", "ghr_{A76}"),
    ("gitlab_pat", "glpat-{A20}"),
    ("gitlab_token", "gldt-{A20}"),
    ("gitlab_token", "glptt-{h40}"),
    ("bitbucket_app_password", "ATBB{A32}"),
    ("npm_token", "npm_{A36}"),
    ("pypi_token", "pypi-AgEIcHlwaS5vcmc{A120}"),
    ("rubygems_token", "rubygems_{h48}"),
    ("crates_io_token", "cio{A32}"),
    ("docker_hub_token", "dckr_pat_{A27}"),
    ("nuget_key", "oy2{l43}"),
    ("artifactory_key", "AKCp{A69}"),
    ("circleci_token", "CCIPAT_{A22}_{h40}"),
    ("postman_key", "PMAK-{h24}-{h34}"),
    ("openai_key", "sk-proj-{A74}"),
    ("openai_key", "sk-{A48}"),
    ("openai_key", "sk-{A20}T3BlbkFJ{A20}"),
    ("anthropic_key", "sk-ant-api03-{A93}AA"),
    ("openrouter_key", "sk-or-v1-{h64}"),
    ("hugging_face_token", "hf_{A34}"),
    ("replicate_token", "r8_{A37}"),
    ("groq_key", "gsk_{A52}"),
    ("xai_key", "xai-{A80}"),
    ("perplexity_key", "pplx-{A48}"),
    ("langsmith_key", "lsv2_pt_{h32}_{h10}"),
    ("slack_token", "xoxb-{d12}-{d13}-{A24}"),
    ("slack_token", "xoxe.xoxp-1-{A146}"),
    ("slack_app_token", "xapp-1-{U11}-{d13}-{h64}"),
    ("slack_webhook", "hooks.slack.com/services/T{U10}/B{U10}/{A24}"),
    ("discord_webhook", "discord.com/api/webhooks/{d18}/{A68}"),
    ("telegram_bot_token", "{d10}:AA{A33}"),
    ("stripe_key", "sk_live_{A24}"),
    ("stripe_key", "rk_test_{A99}"),
    ("stripe_webhook_secret", "whsec_{A32}"),
    ("square_token", "sq0atp-{A22}"),
    ("square_token", "EAAA{A60}"),
    ("braintree_token", "access_token$production${l16}${h32}"),
    ("shopify_token", "shpat_{h32}"),
    ("sendgrid_key", "SG.{A22}.{A43}"),
    ("twilio_api_key", "SK{h32}"),
    ("mailgun_key", "key-{h32}"),
    ("mailchimp_key", "{h32}-us14"),
    ("hubspot_token", "pat-na1-{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("grafana_service_account", "glsa_{A32}_{h8}"),
    ("grafana_cloud_token", "glc_{A80}"),
    ("new_relic_key", "NRAK-{U27}"),
    ("sentry_token", "sntryu_{h64}"),
    ("dynatrace_token", "dt0c01.{U24}.{U64}"),
    ("linear_key", "lin_api_{A40}"),
    ("notion_token", "ntn_{A46}"),
    ("notion_token", "secret_{A43}"),
    ("atlassian_token", "ATATT3xFfGF0{A180}"),
    ("figma_token", "figd_{A40}"),
    ("contentful_token", "CFPAT-{A43}"),
    ("typeform_token", "tfp_{A44}"),
    ("easypost_key", "EZAK{A54}"),
    ("onepassword_service_token", "ops_eyJ{A240}"),
    ("age_secret_key", "AGE-SECRET-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE"),
    ("jwt", "eyJ{A33}.eyJ{A80}.{A43}"),
    ("slack_webhook", "hooks.slack.com/triggers/{U11}/{d13}/{h32}"),
];

/// Rule, a text around a value, and the value in it.
const NAMED: [(&str, &str, &str); 24] = [
    ("aws_secret_key", "aws_secret_access_key = @", "{A40}"),
    ("aws_secret_key", r#"{"SecretAccessKey": "@"}"#, "{A40}"),
    ("azure_storage_key", "AccountName=x;AccountKey=@;EndpointSuffix=core", "{A86}=="),
    ("azure_sas_signature", "https://x.blob.core/c?sv=2022&sig=@", "{A43}%3D"),
    ("heroku_api_key", "HEROKU_API_KEY=@", "{h8}-{h4}-{h4}-{h4}-{h12}"),
    ("cloudflare_api_token", r#"{"cloudflare_api_token":"@"}"#, "{A40}"),
    ("twilio_auth_token", "TWILIO_AUTH_TOKEN: @", "{h32}"),
    ("mailgun_key", "mailgun_key: '@'", "{h32}-{h8}-{h8}"),
    ("datadog_key", "DD_API_KEY=@", "{h32}"),
    ("datadog_key", r#""datadog.app_key" : "@""#, "{h40}"),
    ("discord_bot_token", "Authorization: Bot @", "M{A23}.{A6}.{A38}"),
    ("discord_bot_token", "DISCORD_TOKEN=@", "N{A25}.{A6}.{A38}"),
    ("url_password", "postgres://app:@@db.internal:5432/x", "{A12}"),
    ("url_password", "redis://:@@cache:6379", "{A20}"),
    ("authorization_header", "Authorization: Bearer @", "{A40}"),
    ("authorization_header", r#"{"authorization":"Basic @"}"#, "{A30}=="),
    ("generic_secret", "client_secret: @", "{A32}"),
    ("generic_secret", r#"{"session_token" : "@"}"#, "{A40}"),
    ("generic_secret", "MY_SERVICE_API_KEY=@", "{h32}"),
    ("generic_secret", "curl -d apikey=@&x=1", "{A24}"),
    ("password_assignment", r#"{"password":"@"}"#, "Tr0ub4dor&3"),
    ("password_assignment", "DB_PASSWORD=@", "S3cure-Horse.Battery"),
    ("password_assignment", "db_pwd: '@'", "Winter2024!"),
    ("password_assignment", "passphrase = \"@\"", "x9#kQ2mmZ"),
];

#[test]
fn every_token_is_found_whole_in_every_surrounding() {
    for (rule, template) in TOKENS {
        let token = sample(template);
        for around in ["@", "use @ please", "{\"v\":\"@\"}", "a=@;b", "(@)", "line\n@\nline", "é@é"] {
            let text = around.replace('@', &token);
            assert!(found(&text).contains(&(rule.to_owned(), token.clone())), "{rule} in {around}: {:?}", rules(&text));
        }
        let escaped = format!("{{\"log\":\"first\\n{token}\\nlast\"}}");
        assert!(
            found(&escaped).contains(&(rule.to_owned(), token.clone())),
            "{rule} after an escape: {:?}",
            rules(&escaped)
        );
    }
}

#[test]
fn a_token_is_one_finding() {
    for (rule, template) in TOKENS {
        assert_eq!(rules(&sample(template)), [rule], "{template}");
    }
}

#[test]
fn every_named_value_is_found_without_its_name() {
    for (rule, around, template) in NAMED {
        let value = sample(template);
        let text = around.replacen('@', &value, 1);
        assert_eq!(found(&text), [(rule.to_owned(), value)], "{text}");
    }
}

#[test]
fn every_secret_rule_has_a_sample() {
    let covered: BTreeSet<&str> = TOKENS.iter().map(|(rule, _)| *rule).chain(NAMED.iter().map(|(rule, ..)| *rule)).collect();
    let scanners = Scanners::builtin();
    let secrets = scanners.builtin.rules().filter(|rule| rule.kind == FindingKind::Secrets).map(|rule| &*rule.name);
    let missing: Vec<_> = secrets.filter(|rule| !covered.contains(rule) && *rule != "private_key").collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(covered.len() > 60);
}

#[test]
fn a_token_glued_to_a_word_or_cut_short_is_none() {
    for (rule, template) in TOKENS {
        let token = sample(template);
        // The one token that holds another one whole.
        if !template.starts_with("xoxe.xox") {
            assert_eq!(rules(&format!("x{token}")), [""; 0], "{rule} glued");
        }
        let short = &token[..token.len().min(12)];
        assert_eq!(rules(short), [""; 0], "{rule} cut short");
    }
}

#[test]
fn placeholders_of_documentation_are_no_tokens() {
    for (rule, template) in TOKENS {
        let mut text = String::new();
        let mut rest = template;
        while let Some((before, tail)) = rest.split_once('{') {
            let (token, after) = tail.split_once('}').expect("a closed brace");
            text.push_str(before);
            let filler = if matches!(&token[..1], "h" | "d") { "0" } else { "X" };
            text.push_str(&filler.repeat(token[1..].parse().expect("a length")));
            rest = after;
        }
        text.push_str(rest);
        if text != template {
            assert_eq!(rules(&text), [""; 0], "{rule}: {text}");
        }
    }
}

#[test]
fn a_private_key_is_taken_from_header_to_footer_however_its_lines_end() {
    for label in [
        "PRIVATE KEY",
        "RSA PRIVATE KEY",
        "EC PRIVATE KEY",
        "OPENSSH PRIVATE KEY",
        "ENCRYPTED PRIVATE KEY",
        "PGP PRIVATE KEY BLOCK",
    ] {
        for end in ["\n", "\\n", "\\\\n", "\r\n"] {
            let key = sample(&format!("-----BEGIN {label}-----{end}{{A64}}{end}{{A40}}=={end}-----END {label}-----"));
            let text = format!("before {key} after");
            assert_eq!(found(&text), [("private_key".to_owned(), key)]);
        }
    }
}

#[test]
fn a_private_key_without_its_end_is_taken_as_far_as_it_goes() {
    let key = sample("-----BEGIN PRIVATE KEY-----\n{A64}\n{A20}");
    assert_eq!(found(&format!("{key} rest of the log")), [("private_key".to_owned(), key)]);
}

#[test]
fn a_public_key_or_certificate_is_no_secret() {
    for label in ["PUBLIC KEY", "CERTIFICATE", "RSA PUBLIC KEY", "SSH SIGNATURE"] {
        assert_eq!(rules(&sample(&format!("-----BEGIN {label}-----\n{{A64}}\n-----END {label}-----"))), [""; 0]);
    }
}

#[test]
fn a_specific_rule_names_what_a_generic_one_also_saw() {
    let text = format!("{{\"api_token\":\"{}\"}}", sample("ghp_{A36}"));
    assert_eq!(rules(&text), ["github_pat"]);
}

#[test]
fn the_same_secret_has_the_same_hash_escaped_or_not_and_another_under_another_key() {
    let plain = super::scan("{\"u\":\"https://u:p4ss/w0rd@h\"}");
    assert!(plain.findings.is_empty(), "a slash ends the user part of a URL");
    let token = sample("hvs.{A30}");
    let bare = super::scan(&token).findings.remove(0);
    let escaped = super::scan(&format!("\"\\u0068{}\"", &token[1..])).findings.remove(0);
    assert_eq!(bare.hash, escaped.hash);
    assert_eq!(bare.hash.len(), 32);
    let other = Scanners::builtin().scan(&super::everything(), &token, &crate::scan::FindingKey::new([8; 32]));
    assert_ne!(bare.hash, other.findings[0].hash);
}

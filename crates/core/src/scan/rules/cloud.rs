//! Keys of clouds and of the tools that drive them.

use super::super::checks;
use super::{Probe, leads};

pub(super) static PROBES: [Probe; 24] = [
    Probe::token("aws_access_key", &["akia", "asia", "abia", "acca"], "(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}"),
    Probe::named(
        "aws_secret_key",
        &["secret_access_key", "secret-access-key", "secretaccesskey", "aws_secret"],
        "secret[_-]?access[_-]?key|aws_secret",
        "[A-Za-z0-9/+]{40}",
    )
    .check(checks::random),
    Probe::token("aws_bedrock_key", &["absk"], "ABSK[A-Za-z0-9+/]{109,269}={0,2}").open(),
    Probe::token("gcp_api_key", &["aiza"], "AIza[0-9A-Za-z_-]{35}"),
    Probe::token("gcp_oauth_token", &["ya29."], r"ya29\.[0-9A-Za-z_-]{20,1024}").open(),
    Probe::token("gcp_oauth_secret", &["gocspx-"], "GOCSPX-[0-9A-Za-z_-]{28}"),
    Probe::token("azure_storage_key", &["accountkey"], r"(?i:accountkey)\s{0,2}=\s{0,2}([A-Za-z0-9+/]{86}==)"),
    Probe::token("azure_client_secret", &["7q~", "8q~"], "[A-Za-z0-9_~.-]{3}[78]Q~[A-Za-z0-9_~.-]{31,34}")
        .lead(leads::back::<3>),
    Probe::token("azure_sas_signature", &["sig="], "sig=([A-Za-z0-9%+/]{43,70}(?:%3[dD]|=))").open(),
    Probe::token("azure_devops_token", &["azdo"], "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}")
        .lead(leads::back::<76>)
        .check(checks::random),
    Probe::token("digitalocean_token", &["dop_v1_", "doo_v1_", "dor_v1_"], "do[opr]_v1_[a-f0-9]{64}"),
    Probe::token("heroku_token", &["hrku-"], "HRKU-[0-9A-Za-z_-]{58,64}"),
    Probe::named("heroku_api_key", &["heroku"], "heroku", "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    Probe::named(
        "cloudflare_api_token",
        &["cloudflare", "cf_api_", "cf-api-"],
        "cloudflare|cf[_-]api[_-]",
        "[A-Za-z0-9_-]{40}|[a-f0-9]{37}",
    )
    .check(checks::random),
    Probe::token("cloudflare_origin_key", &["v1.0-"], "v1\\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    Probe::token("alibaba_access_key", &["ltai"], "LTAI[A-Za-z0-9]{12,26}"),
    Probe::token("vault_token", &["hvs.", "hvb.", "hvr."], r"hv[sbr]\.[A-Za-z0-9_-]{24,300}").open(),
    Probe::token("terraform_cloud_token", &[".atlasv1."], r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,70}")
        .lead(leads::back::<14>),
    Probe::token("pulumi_token", &["pul-"], "pul-[a-f0-9]{40}"),
    Probe::token(
        "doppler_token",
        &["dp.pt.", "dp.st.", "dp.ct.", "dp.sa."],
        r"dp\.(?:pt|st|ct|sa)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
    ),
    Probe::token("databricks_token", &["dapi"], "dapi[a-f0-9]{32}(?:-[0-9])?"),
    Probe::token("planetscale_token", &["pscale_"], r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9=._-]{32,64}"),
    Probe::token("supabase_key", &["sbp_", "sb_secret_"], "(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{22,60})"),
    Probe::token(
        "tailscale_key",
        &["tskey-"],
        "tskey-(?:auth|api|client|scim|webhook)-[A-Za-z0-9]{8,24}-[A-Za-z0-9]{20,48}",
    ),
];

//! Keys of hosted services.

use super::super::checks;
use super::{Probe, leads};

pub(super) static PROBES: [Probe; 39] = [
    Probe::token(
        "slack_token",
        &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox"],
        r"xox[abeprs](?:\.xox[bp])?-[0-9A-Za-z]{1,20}-[0-9A-Za-z-]{10,250}",
    )
    .open(),
    Probe::token("slack_app_token", &["xapp-"], "xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[a-z0-9]{32,80}"),
    Probe::token(
        "slack_webhook",
        &["hooks.slack.com/services/"],
        r"(?i:hooks\.slack\.com)/services/T[A-Z0-9]{6,14}/B[A-Z0-9]{6,14}/[A-Za-z0-9]{20,30}",
    ),
    Probe::token(
        "slack_webhook",
        &["hooks.slack.com/workflows/", "hooks.slack.com/triggers/"],
        r"(?i:hooks\.slack\.com)/(?:workflows|triggers)/[A-Za-z0-9/]{30,120}",
    ),
    Probe::named(
        "discord_bot_token",
        &["discord"],
        "discord",
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38}",
    ),
    Probe::token(
        "discord_bot_token",
        &["bot m", "bot n", "bot o"],
        r"(?i:bot)\s([MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,38})",
    ),
    Probe::token(
        "discord_webhook",
        &["discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        r"(?i:discord(?:app)?\.com)/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{60,80}",
    ),
    Probe::token("telegram_bot_token", &[":aa"], "[0-9]{8,10}:AA[A-Za-z0-9_-]{33}").lead(leads::after_digits),
    Probe::token("stripe_key", &["sk_live_", "sk_test_", "rk_live_", "rk_test_"], "[sr]k_(?:live|test)_[A-Za-z0-9]{16,247}"),
    Probe::token("stripe_webhook_secret", &["whsec_"], "whsec_[A-Za-z0-9+/]{32,64}={0,2}").open(),
    Probe::token("square_token", &["sq0atp-", "sq0csp-"], "sq0(?:atp-[A-Za-z0-9_-]{22}|csp-[A-Za-z0-9_-]{43})"),
    Probe::token("square_token", &["eaaa"], "EAAA[A-Za-z0-9_-]{60}").check(checks::random),
    Probe::token("braintree_token", &["access_token$"], r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}"),
    Probe::token("shopify_token", &["shpat_", "shpca_", "shppa_", "shpss_"], "shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Probe::token("sendgrid_key", &["sg."], r"SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    Probe::token(
        "twilio_api_key",
        &["sk0", "sk1", "sk2", "sk3", "sk4", "sk5", "sk6", "sk7", "sk8", "sk9", "ska", "skb", "skc", "skd", "ske", "skf"],
        "SK[0-9a-f]{32}",
    ),
    Probe::named("twilio_auth_token", &["twilio"], "twilio", "[0-9a-f]{32}"),
    Probe::token("mailgun_key", &["key-"], "key-[0-9a-f]{32}"),
    Probe::named("mailgun_key", &["mailgun"], "mailgun", "[0-9a-f]{32}-[0-9a-f]{8}-[0-9a-f]{8}"),
    Probe::token("mailchimp_key", &["-us"], "[0-9a-f]{32}-us[0-9]{1,2}").lead(leads::back::<32>),
    Probe::token("hubspot_token", &["pat-na", "pat-eu"], "pat-(?:na|eu)[0-9]-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    Probe::named(
        "datadog_key",
        &["datadog", "dd_api_key", "dd-api-key", "dd_app_key", "dd_application_key"],
        "datadog|dd[_-](?:api|app|application)[_-]key",
        "[0-9a-f]{40}|[0-9a-f]{32}",
    ),
    Probe::token("grafana_service_account", &["glsa_"], "glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    Probe::token("grafana_cloud_token", &["glc_"], "glc_[A-Za-z0-9+/]{32,400}={0,3}").open(),
    Probe::token("new_relic_key", &["nrak-"], "NRAK-[A-Z0-9]{27}"),
    Probe::token("new_relic_key", &["nrii-"], "NRII-[A-Za-z0-9_-]{32}"),
    Probe::token("sentry_token", &["sntryu_"], "sntryu_[a-f0-9]{64}"),
    Probe::token("sentry_token", &["sntrys_"], "sntrys_eyJ[A-Za-z0-9+/=_-]{40,500}").open(),
    Probe::token("dynatrace_token", &["dt0c01.", "dt0s01.", "dt0s16."], r"dt0[cs](?:01|16)\.[A-Z0-9]{8,24}\.[A-Z0-9]{64}"),
    Probe::token("linear_key", &["lin_api_", "lin_oauth_"], "lin_(?:api_[A-Za-z0-9]{40}|oauth_[a-f0-9]{64})"),
    Probe::token("notion_token", &["ntn_"], "ntn_[A-Za-z0-9]{43,50}"),
    Probe::token("notion_token", &["secret_"], "secret_[A-Za-z0-9]{43}").check(checks::random),
    Probe::token("atlassian_token", &["atatt3"], "ATATT3[A-Za-z0-9_=-]{100,250}").open(),
    Probe::token("figma_token", &["figd_"], "figd_[A-Za-z0-9_-]{38,60}"),
    Probe::token("contentful_token", &["cfpat-"], "CFPAT-[A-Za-z0-9_-]{43}"),
    Probe::token("typeform_token", &["tfp_"], "tfp_[A-Za-z0-9_.=-]{40,70}"),
    Probe::token("easypost_key", &["ezak", "eztk"], "EZ[AT]K[A-Za-z0-9]{54}"),
    Probe::token("onepassword_service_token", &["ops_eyj"], "ops_eyJ[A-Za-z0-9+/_-]{100,2000}={0,3}").open(),
    Probe::token("age_secret_key", &["age-secret-key-1"], "(?i:AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58})"),
];

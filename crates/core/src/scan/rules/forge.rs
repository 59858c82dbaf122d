//! Keys of code hosts, package registries and build services.

use super::super::checks;
use super::Probe;

pub(super) static PROBES: [Probe; 18] = [
    Probe::token("github_pat", &["ghp_"], "ghp_[A-Za-z0-9]{36,251}"),
    Probe::token("github_fine_grained_pat", &["github_pat_"], "github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    Probe::token("github_oauth_token", &["gho_"], "gho_[A-Za-z0-9]{36,251}"),
    Probe::token("github_user_token", &["ghu_"], "ghu_[A-Za-z0-9]{36,251}"),
    Probe::token("github_server_token", &["ghs_"], "ghs_[A-Za-z0-9]{36,251}"),
    Probe::token("github_refresh_token", &["ghr_"], "ghr_[A-Za-z0-9]{36,251}"),
    Probe::token("gitlab_pat", &["glpat-"], r"glpat-[A-Za-z0-9_-]{20,64}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?").open(),
    Probe::token(
        "gitlab_token",
        &["gldt-", "glrt-", "glptt-", "glcbt-", "glft-", "gloas-", "glsoat-", "glagent-", "glimt-"],
        "gl(?:dt|rt|ptt|cbt|ft|oas|soat|agent|imt)-[A-Za-z0-9_-]{20,80}",
    )
    .open(),
    Probe::token("bitbucket_app_password", &["atbb"], "ATBB[A-Za-z0-9]{32}"),
    Probe::token("npm_token", &["npm_"], "npm_[A-Za-z0-9]{36}"),
    Probe::token("pypi_token", &["pypi-age"], "pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBpLm9yZw)[A-Za-z0-9_-]{50,1000}").open(),
    Probe::token("rubygems_token", &["rubygems_"], "rubygems_[a-f0-9]{48}"),
    Probe::token("crates_io_token", &["cio"], "cio[A-Za-z0-9]{32}").check(checks::random),
    Probe::token("docker_hub_token", &["dckr_pat_", "dckr_oat_"], "dckr_[po]at_[A-Za-z0-9_-]{27,32}"),
    Probe::token("nuget_key", &["oy2"], "oy2[a-z0-9]{43}"),
    Probe::token("artifactory_key", &["akcp"], "AKCp[A-Za-z0-9]{69}"),
    Probe::token("circleci_token", &["ccipat_"], "CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    Probe::token("postman_key", &["pmak-"], "PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
];

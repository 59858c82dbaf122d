//! The configuration files for pools, timeouts and quotas.

use std::path::PathBuf;

use clap::Args;

#[derive(Args, Debug)]
pub(crate) struct RoutingArgs {
    /// Pools file: put in force at the start and whenever it changes; without one, pool `default` takes every topic
    #[arg(long, env = "POOL_CONFIG_PATH", hide_env_values = true, value_name = "FILE", help_heading = "Routing")]
    pub(super) pools: Option<PathBuf>,

    /// Timeouts file: put in force at the start and whenever it changes
    #[arg(long, env = "TIMEOUT_CONFIG_PATH", hide_env_values = true, value_name = "FILE", help_heading = "Routing")]
    pub(super) timeouts: Option<PathBuf>,

    /// Quotas file: put in force at the start and whenever it changes
    #[arg(long, env = "QUOTA_CONFIG_PATH", hide_env_values = true, value_name = "FILE", help_heading = "Routing")]
    pub(super) quotas: Option<PathBuf>,

    /// Take no file from the folder config. Without this, config/pools.yaml, config/timeouts.yaml and config/safety.yaml (a policy)
    /// count where they exist and no option names another
    #[arg(long, env = "LOCKGATE_NO_CONFIG", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Routing")]
    pub(super) no_config: bool,
}

//! Settings of governance: the policy file, the fail mode, the remote kernel, the key of findings.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use lockgate_core::breaker::BreakerSettings;
use lockgate_core::policy::{FailMode, InputPolicy, OutputGate};
use lockgate_core::scan::FindingKey;
use lockgate_core::time;
use lockgate_engine::LocalKernel;
use lockgate_kernel::{CallOptions, ChannelTls, KernelAddress, RemoteKernel, Secret};
use lockgate_ports::{Clock, Counters, Kernel};
use lockgate_tls::TlsPaths;

use super::keyfile;
use crate::args;
use crate::error::CliError;

#[derive(Args, Debug)]
pub(crate) struct GovernanceArgs {
    /// Policy file: put in force at the start and whenever it changes
    #[arg(long, env = "LOCKGATE_POLICY", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    pub(super) policy: Option<PathBuf>,

    /// What to do with jobs while the safety kernel is unreachable: closed waits, open lets them run, marked and judged later
    #[arg(
        long = "fail-mode",
        env = "POLICY_CHECK_FAIL_MODE",
        hide_env_values = true,
        ignore_case = true,
        value_name = "MODE",
        help_heading = "Governance"
    )]
    fail_mode: Option<FailModeArg>,

    /// When fail mode open closes by itself, like 2030-01-31T08:00:00Z
    #[arg(long, env = "POLICY_CHECK_FAIL_OPEN_UNTIL", hide_env_values = true, value_parser = args::timestamp, value_name = "TIME",
        help_heading = "Governance")]
    fail_open_until: Option<Timestamp>,

    /// Whether results are checked; unless given, as soon as the policy has output rules
    #[arg(long, env = "OUTPUT_POLICY_ENABLED", hide_env_values = true, value_parser = BoolishValueParser::new(), value_name = "BOOL",
        help_heading = "Governance")]
    output_policy: Option<bool>,

    /// Address of a safety kernel elsewhere that judges instead of this process: host:port
    #[arg(
        long,
        env = "SAFETY_KERNEL_ADDR",
        hide_env_values = true,
        conflicts_with = "policy",
        value_name = "ADDRESS",
        help_heading = "Governance"
    )]
    pub(super) safety_kernel: Option<String>,

    /// How long a safety kernel that failed three times is left alone before it is tried again
    #[arg(long, default_value = "30s", value_parser = args::duration, value_name = "SPAN", help_heading = "Governance")]
    safety_kernel_retry: Duration,

    /// Jobs a second that are judged once a safety kernel that was away is back; as many again of those that ran unjudged
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..), value_name = "COUNT",
        help_heading = "Governance")]
    pub(super) release_rate: u32,

    /// Key of role scheduler for a safety kernel that asks for credentials
    #[arg(long, env = "SAFETY_KERNEL_API_KEY", hide_env_values = true, requires = "safety_kernel", value_name = "KEY",
        value_parser = secret, help_heading = "Governance")]
    safety_kernel_key: Option<Secret>,

    /// Certificate authority of the safety kernel, a PEM file; the public ones unless given
    #[arg(long, env = "SAFETY_KERNEL_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    safety_kernel_ca: Option<PathBuf>,

    /// Certificate to show to the safety kernel, a PEM file, if it was bound to the role scheduler there
    #[arg(long, env = "SAFETY_KERNEL_TLS_CERT", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    safety_kernel_cert: Option<PathBuf>,

    /// Key of that certificate, a PEM file
    #[arg(long, env = "SAFETY_KERNEL_TLS_KEY", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    safety_kernel_tls_key: Option<PathBuf>,

    /// Refuse to start rather than speak with the safety kernel in the clear
    #[arg(long, env = "SAFETY_KERNEL_TLS_REQUIRED", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Governance")]
    safety_kernel_tls_required: bool,

    /// Speak with the safety kernel in the clear
    #[arg(long, env = "SAFETY_KERNEL_INSECURE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Governance")]
    safety_kernel_insecure: bool,
}

fn moment(at: Timestamp) -> time::Timestamp {
    time::Timestamp::from_millis(at.as_millisecond())
}

fn secret(text: &str) -> Result<Secret, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(Secret(text.to_owned())) }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum FailModeArg {
    Closed,
    Open,
}

impl GovernanceArgs {
    /// The operator's fail mode; if absent, the policy's applies.
    pub(super) fn fail_mode(&self) -> Option<InputPolicy> {
        self.fail_mode.map(|mode| match mode {
            FailModeArg::Closed => InputPolicy::CLOSED,
            FailModeArg::Open => InputPolicy { mode: FailMode::Open, until: self.fail_open_until.map(moment) },
        })
    }

    pub(super) fn check(&self) -> Result<(), CliError> {
        // `--fail-mode closed` together with `--fail-open-until` is accepted, so that an operator can close the mode in a
        // hurry without removing its end from the environment.
        if self.fail_open_until.is_some() && self.fail_mode.is_none() {
            let text =
                "--fail-open-until (POLICY_CHECK_FAIL_OPEN_UNTIL) needs --fail-mode open (POLICY_CHECK_FAIL_MODE=open)";
            return Err(CliError::Usage(text.to_owned()));
        }
        Ok(())
    }

    fn files(&self) -> TlsPaths {
        let Self { safety_kernel_ca, safety_kernel_cert, safety_kernel_tls_key, .. } = self;
        TlsPaths { ca: safety_kernel_ca.clone(), cert: safety_kernel_cert.clone(), key: safety_kernel_tls_key.clone() }
    }

    /// The safety kernel: a remote one if its address is given, otherwise the kernel of this process. `counters` are those
    /// shared with other replicas, if there are any.
    pub(super) fn kernel(
        &self,
        clock: &Arc<dyn Clock>,
        key: FindingKey,
        counters: Option<Arc<dyn Counters>>,
    ) -> Result<Arc<dyn Kernel>, CliError> {
        let Some(uri) = self.safety_kernel.clone() else {
            return Ok(Arc::new(LocalKernel::new(clock.clone(), key, self.output_policy).sharing(counters)));
        };
        let files = self.files();
        if self.safety_kernel_insecure && (self.safety_kernel_tls_required || files != TlsPaths::default()) {
            return Err(CliError::Usage(
                "SAFETY_KERNEL_INSECURE contradicts the other SAFETY_KERNEL_TLS settings".to_owned(),
            ));
        }
        let tls = match self.safety_kernel_insecure {
            true => ChannelTls::Insecure,
            false => ChannelTls::Required(files),
        };
        let breaker = BreakerSettings { open_for: self.safety_kernel_retry, ..BreakerSettings::default() };
        let (address, options) = (
            KernelAddress { uri, tls, key: self.safety_kernel_key.clone() },
            CallOptions { breaker, ..CallOptions::default() },
        );
        let gate = OutputGate::new(key, self.output_policy);
        let remote = RemoteKernel::new(&address, clock.clone(), counters, gate, options);
        Ok(Arc::new(remote.map_err(|error| CliError::Usage(error.to_string()))?))
    }
}

/// The key of findings.
pub(super) fn finding_key(data: &Path, fresh: [u8; 32]) -> Result<FindingKey, CliError> {
    keyfile::kept(&data.join("finding.key"), fresh, "findings get a new key").map(FindingKey::new)
}

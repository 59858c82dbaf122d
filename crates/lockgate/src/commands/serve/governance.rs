//! What rules the server: the policy file, the fail mode, the key of findings.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};
use lockgate_core::breaker::BreakerSettings;
use lockgate_core::policy::{FailMode, Policy};
use lockgate_core::request::Caller;
use lockgate_core::scan::FindingKey;
use lockgate_engine::{ApiError, Engine, LocalKernel, PolicyText};
use lockgate_kernel::{Address, Options, RemoteKernel, Tls};
use lockgate_ports::{Clock, Kernel};
use tokio::sync::watch;

use crate::args;
use crate::error::CliError;

/// How often the policy file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Who puts the file in force, for the records.
const FILE_ACTOR: &str = "policy-file";

#[derive(Args, Debug)]
pub(crate) struct GovernanceArgs {
    /// Policy file: put in force at the start and whenever it changes
    #[arg(long, env = "LOCKGATE_POLICY", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    policy: Option<PathBuf>,

    /// What to do with jobs while nobody can judge them: closed waits, open lets them run, marked and judged later
    #[arg(
        long = "fail-mode",
        env = "POLICY_CHECK_FAIL_MODE",
        hide_env_values = true,
        value_name = "MODE",
        help_heading = "Governance"
    )]
    fail_mode: Option<Mode>,

    /// Whether results are checked; unless given, as soon as the policy has output rules
    #[arg(long, env = "OUTPUT_POLICY_ENABLED", hide_env_values = true, value_name = "BOOL", help_heading = "Governance")]
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
    safety_kernel: Option<String>,

    /// How long a safety kernel that failed three times is left alone before it is tried again
    #[arg(long, default_value = "30s", value_parser = args::duration, value_name = "SPAN", help_heading = "Governance")]
    safety_kernel_retry: Duration,

    /// Certificate authority of the safety kernel, a PEM file; the public ones unless given
    #[arg(long, env = "SAFETY_KERNEL_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = "Governance")]
    safety_kernel_ca: Option<PathBuf>,

    /// Refuse to start rather than speak with the safety kernel in the clear
    #[arg(long, env = "SAFETY_KERNEL_TLS_REQUIRED", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Governance")]
    safety_kernel_tls_required: bool,

    /// Speak with the safety kernel in the clear
    #[arg(long, env = "SAFETY_KERNEL_INSECURE", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = "Governance")]
    safety_kernel_insecure: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Mode {
    Closed,
    Open,
}

impl GovernanceArgs {
    pub(super) fn fail_mode(&self) -> Option<FailMode> {
        self.fail_mode.map(|mode| match mode {
            Mode::Closed => FailMode::Closed,
            Mode::Open => FailMode::Open,
        })
    }

    /// Whoever judges: the kernel elsewhere if one is named, else this process.
    pub(super) fn kernel(&self, clock: &Arc<dyn Clock>, key: FindingKey) -> Result<Arc<dyn Kernel>, CliError> {
        let Some(uri) = self.safety_kernel.clone() else {
            return Ok(Arc::new(LocalKernel::new(clock.clone(), key, self.output_policy)));
        };
        if self.safety_kernel_insecure && (self.safety_kernel_tls_required || self.safety_kernel_ca.is_some()) {
            return Err(CliError::Usage(
                "SAFETY_KERNEL_INSECURE contradicts the other SAFETY_KERNEL_TLS settings".to_owned(),
            ));
        }
        let tls = match self.safety_kernel_insecure {
            true => Tls::Insecure,
            false => Tls::Required { ca: self.safety_kernel_ca.clone() },
        };
        let breaker = BreakerSettings { open_for: self.safety_kernel_retry, ..BreakerSettings::default() };
        let options = Options { breaker, outputs: self.output_policy.unwrap_or(true), ..Options::default() };
        let remote = RemoteKernel::new(&Address { uri, tls }, clock.clone(), options);
        Ok(Arc::new(remote.map_err(|error| CliError::Usage(error.to_string()))?))
    }

    /// Takes up the policy of the Store, and puts the file in force before the first job is taken. A file that is wrong stops the start: better none than ungoverned.
    pub(super) async fn import(&self, engine: &Engine) -> Result<Option<PolicyFile>, CliError> {
        engine.load_policy().await.map_err(|error| CliError::Server(error.to_string()))?;
        let Some(path) = self.policy.clone() else { return Ok(None) };
        let text = std::fs::read_to_string(&path)
            .map_err(|error| CliError::Usage(format!("--policy {}: {error}", path.display())))?;
        let file = PolicyFile { path, text };
        if file.was_applied(engine).await? {
            // What a person put in force since then, an emergency deny say, must survive a restart.
            tracing::info!(file = %file.path.display(), "the policy file is unchanged since it was last put in force; the policy stays");
            return Ok(Some(file));
        }
        file.apply(engine).await.map_err(|error| CliError::Usage(format!("the policy cannot be used: {error}")))?;
        Ok(Some(file))
    }
}

/// The file as it was last looked at.
pub(super) struct PolicyFile {
    path: PathBuf,
    text: String,
}

impl PolicyFile {
    /// Whether this very text is the last one that a file brought.
    async fn was_applied(&self, engine: &Engine) -> Result<bool, CliError> {
        let Ok(policy) = Policy::load(&self.path.display().to_string(), &self.text) else { return Ok(false) };
        let known = engine.policy_snapshots().await.map_err(|error| CliError::Server(error.to_string()))?;
        let last = known.iter().find(|row| row.actor.as_str() == FILE_ACTOR);
        Ok(last.is_some_and(|row| row.id == *policy.snapshot()))
    }

    async fn apply(&self, engine: &Engine) -> Result<(), ApiError> {
        let caller = Caller::new("default", FILE_ACTOR);
        let file = self.path.display().to_string();
        let new = PolicyText { file, text: self.text.clone(), expected: None };
        engine.activate_policy(&caller, new).await.map(|_| ())
    }

    /// Puts every new text in force. One that is wrong is told about and changes nothing.
    pub(super) async fn watch(mut self, engine: Engine, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = tokio::time::sleep(LOOK_EVERY) => {}
            }
            let text = match tokio::fs::read_to_string(&self.path).await {
                Ok(text) if text != self.text => text,
                Ok(_) => continue,
                Err(error) => {
                    tracing::warn!(file = %self.path.display(), %error, "the policy file cannot be read; the policy stays");
                    continue;
                }
            };
            let before = std::mem::replace(&mut self.text, text);
            match self.apply(&engine).await {
                Ok(()) => tracing::info!(file = %self.path.display(), "the changed policy is in force"),
                Err(error @ ApiError::Invalid(_)) => {
                    tracing::error!(file = %self.path.display(), %error, "the changed policy is wrong; the old one stays");
                }
                Err(error) => {
                    // Not the file's fault: tried again.
                    self.text = before;
                    tracing::warn!(file = %self.path.display(), %error, "the changed policy could not be put in force yet");
                }
            }
        }
    }
}

/// The key of findings: made once, kept beside the data, readable by nobody else.
pub(super) fn finding_key(data: &Path, fresh: [u8; 32]) -> Result<FindingKey, CliError> {
    let path = data.join("finding.key");
    let wrong = |error: std::io::Error| CliError::Usage(format!("{}: {error}", path.display()));
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path) {
        Ok(mut file) => {
            file.write_all(&fresh).and_then(|()| file.sync_all()).map_err(wrong)?;
            Ok(FindingKey::new(fresh))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let bytes = std::fs::read(&path).map_err(wrong)?;
            let key = <[u8; 32]>::try_from(bytes).map_err(|_| {
                CliError::Usage(format!("{} is damaged; remove it and findings get a new key", path.display()))
            })?;
            Ok(FindingKey::new(key))
        }
        Err(error) => Err(wrong(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_a_damaged_one_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let hash = |key: FindingKey| {
            let scanners = lockgate_core::scan::Scanners::builtin();
            let selection = scanners.select(&["email"]).expect("known");
            scanners.scan(&selection, "mail ann@example.com", &key).findings[0].hash.clone()
        };
        let first = hash(finding_key(folder.path(), [1; 32]).expect("made"));
        assert_eq!(hash(finding_key(folder.path(), [2; 32]).expect("read")), first);
        std::fs::write(folder.path().join("finding.key"), "short").expect("written");
        assert!(finding_key(folder.path(), [3; 32]).is_err());
    }
}

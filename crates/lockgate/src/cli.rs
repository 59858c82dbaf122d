//! The grammar of the command line.

use std::any::TypeId;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStr, Resettable};
use clap::{Arg, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use jiff::Timestamp;
use lockgate_ports::clock::Clock;
use lockgate_worker::{Access, Credential, Tls};

use crate::args;
use crate::clock::SystemClock;
use crate::commands;
use crate::deadline::CALL_WITHIN;
use crate::error::{CliError, EXIT_CODES_HELP, Exit};
use crate::output::{Format, Output};
use crate::session::CliSession;

/// The default address of the server: the one on which `serve` listens by default.
pub(crate) const SERVER: &str = "http://127.0.0.1:8080";

/// Set apart from the options of a command.
const GLOBAL: &str = "Global options";

/// A policy-governed job scheduler in one binary.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, after_long_help = EXIT_CODES_HELP, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) connection: Connection,

    #[command(flatten)]
    style: Style,

    #[command(subcommand)]
    command: CliCommand,
}

/// Where the server is and who asks.
#[derive(Args, Clone, Debug)]
pub(crate) struct Connection {
    /// Address of the server
    #[arg(long, global = true, env = "LOCKGATE_SERVER", hide_env_values = true, default_value = SERVER,
        value_name = "URL", help_heading = GLOBAL)]
    pub(crate) server: String,

    /// Tenant to act for
    #[arg(long, global = true, env = "LOCKGATE_TENANT", hide_env_values = true, value_name = "NAME", help_heading = GLOBAL)]
    pub(crate) tenant: Option<String>,

    /// Who acts, for the records
    #[arg(long, global = true, env = "LOCKGATE_ACTOR", hide_env_values = true, value_name = "NAME", help_heading = GLOBAL)]
    pub(crate) actor: Option<String>,

    /// What kind of actor, such as person, service or agent; policies may ask for it
    #[arg(long, global = true, env = "LOCKGATE_ACTOR_TYPE", hide_env_values = true, value_name = "KIND", help_heading = GLOBAL)]
    pub(crate) actor_type: Option<String>,

    /// Longest wait for an answer, or for a stream to begin; for dlq replay, audit verify and tenants erase 120 times as long
    #[arg(long, global = true, env = "LOCKGATE_CALL_TIMEOUT", hide_env_values = true, default_value = CALL_WITHIN,
        value_parser = args::duration, value_name = "SPAN", help_heading = GLOBAL)]
    pub(crate) call_timeout: Duration,

    /// API key or token to come in with. Better given by the variable: others see what is typed
    #[arg(long, global = true, env = "LOCKGATE_API_KEY", hide_env_values = true, value_name = "KEY", help_heading = GLOBAL)]
    api_key: Option<Credential>,

    /// Authorities to believe beside the public ones, for servers at https addresses
    #[arg(long, global = true, env = "LOCKGATE_TLS_CA", hide_env_values = true, value_name = "FILE", help_heading = GLOBAL)]
    tls_ca: Option<PathBuf>,

    /// Certificate to show to the server, with its chain; needs --client-key
    #[arg(long, global = true, env = "LOCKGATE_CLIENT_CERT", hide_env_values = true, value_name = "FILE", help_heading = GLOBAL)]
    client_cert: Option<PathBuf>,

    /// Key of the certificate
    #[arg(long, global = true, env = "LOCKGATE_CLIENT_KEY", hide_env_values = true, value_name = "FILE", help_heading = GLOBAL)]
    client_key: Option<PathBuf>,
}

impl Connection {
    /// The credential and the TLS files of this client.
    pub(crate) fn access(&self) -> Result<Access, CliError> {
        let identity = match (self.client_cert.clone(), self.client_key.clone()) {
            (Some(cert), Some(key)) => Some((cert, key)),
            (None, None) => None,
            _ => {
                return Err(CliError::Usage(
                    "--client-cert and --client-key belong together; give both or neither".to_owned(),
                ));
            }
        };
        // An empty variable counts as unset.
        let credential = self.api_key.clone().filter(|key| !key.is_empty());
        Ok(Access { credential, tls: Tls { ca: self.tls_ca.clone(), identity }, ..Access::default() })
    }
}

#[derive(Args, Clone, Copy, Debug)]
struct Style {
    /// Print JSON instead of tables
    #[arg(long, global = true, help_heading = GLOBAL)]
    json: bool,

    /// Print without colours
    #[arg(long, global = true, env = "NO_COLOR", hide_env_values = true, value_parser = clap::builder::FalseyValueParser::new(),
        help_heading = GLOBAL)]
    no_color: bool,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    Submit(commands::submit::Submit),
    Get(commands::get::GetArgs),
    Jobs(commands::jobs::JobsArgs),
    Watch(commands::watch::WatchArgs),
    Cancel(commands::cancel::CancelArgs),
    Retry(commands::force_retry::ForceRetry),
    Why(commands::why::WhyArgs),
    Logs(commands::logs::LogsArgs),
    Dlq(commands::dlq::Dlq),
    Approvals(commands::approvals::ApprovalsArgs),
    Release(commands::release::Release),
    Policy(commands::policy::PolicyArgs),
    Audit(commands::audit::Audit),
    Breaker(commands::breaker::BreakerArgs),
    Queues(commands::queues::QueuesArgs),
    Top(commands::top::Top),
    Health(commands::health::HealthArgs),
    Dag(commands::dag::DagArgs),
    Saga(commands::saga::SagaArgs),
    Schedule(commands::schedule::ScheduleArgs),
    Auth(commands::auth::Auth),
    Pools(commands::pools::PoolsArgs),
    Timeouts(commands::timeouts::TimeoutsArgs),
    Quotas(commands::quotas::QuotasArgs),
    Tenants(commands::tenants::TenantsArgs),
    Workers(commands::workers::WorkersArgs),
    Load(commands::load::LoadArgs),
    Serve(Box<commands::serve::Serve>),
    Worker(Box<commands::worker::WorkerArgs>),
    Config(commands::settings::ConfigArgs),
    Migrate(commands::migrate::Migrate),
    Backup(commands::backup::Backup),
    Restore(commands::backup::Restore),
    Doctor(commands::doctor::Doctor),
    Bench(commands::bench::BenchArgs),
    Chaos(commands::chaos::ChaosArgs),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
}

impl Cli {
    /// Parses a command line, with the program's name as the first word.
    pub(crate) fn read(words: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Self, clap::Error> {
        let mut grammar = Self::grammar();
        let mut matches = grammar.try_get_matches_from_mut(words)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut grammar))
    }

    /// No option begins with a digit, so a word that looks like a negative number is the value of the option before it. That
    /// option then refuses it by name; otherwise the error would speak of an unexpected argument.
    pub(crate) fn grammar() -> clap::Command {
        signed(without_empty_variables(Self::command()))
    }

    pub(crate) fn output(&self) -> Output {
        let now = Timestamp::from_millisecond(SystemClock.now().as_millis()).unwrap_or_default();
        let colour = !self.style.no_color && std::io::stdout().is_terminal();
        Output::new(if self.style.json { Format::Programs } else { Format::People { colour } }, now)
    }

    pub(crate) async fn run(self) -> Result<Exit, CliError> {
        let out = self.output();
        let connect = async || CliSession::connect(&self.connection, out).await;
        match self.command {
            CliCommand::Completions(command) => command.run(),
            CliCommand::Man(command) => command.run(),
            CliCommand::Serve(command) => command.run(out).await,
            CliCommand::Config(command) => command.run(out),
            CliCommand::Migrate(command) => command.run(out).await,
            CliCommand::Backup(command) => command.run(out).await,
            CliCommand::Restore(command) => command.run(out).await,
            CliCommand::Doctor(command) => command.run(&self.connection, out).await,
            CliCommand::Bench(command) => command.run(out).await,
            CliCommand::Chaos(command) => command.run(out).await,
            CliCommand::Worker(command) => command.run(&self.connection, out).await,
            CliCommand::Submit(command) => command.run(&mut connect().await?).await,
            CliCommand::Get(command) => command.run(&mut connect().await?).await,
            CliCommand::Jobs(command) => command.run(&mut connect().await?).await,
            CliCommand::Watch(command) => command.run(&mut connect().await?).await,
            CliCommand::Cancel(command) => command.run(&mut connect().await?).await,
            CliCommand::Retry(command) => command.run(&mut connect().await?).await,
            CliCommand::Why(command) => command.run(&mut connect().await?).await,
            CliCommand::Logs(command) => command.run(&mut connect().await?).await,
            CliCommand::Dlq(command) => command.run(&mut connect().await?).await,
            CliCommand::Approvals(command) => command.run(&mut connect().await?).await,
            CliCommand::Release(command) => command.run(&mut connect().await?).await,
            CliCommand::Policy(command) => command.run(&self.connection, out).await,
            CliCommand::Audit(command) => command.run(&mut connect().await?).await,
            CliCommand::Breaker(command) => command.run(&mut connect().await?).await,
            CliCommand::Queues(command) => command.run(&mut connect().await?).await,
            CliCommand::Top(command) => command.run(&connect().await?).await,
            CliCommand::Health(command) => command.run(&mut connect().await?).await,
            CliCommand::Schedule(command) => command.run(&self.connection, out).await,
            CliCommand::Auth(command) => command.run(&self.connection, out).await,
            CliCommand::Dag(command) => command.run(&self.connection, out).await,
            CliCommand::Saga(command) => command.run(&self.connection, out).await,
            CliCommand::Pools(command) => command.run(&self.connection, out).await,
            CliCommand::Timeouts(command) => command.run(&self.connection, out).await,
            CliCommand::Quotas(command) => command.run(&self.connection, out).await,
            CliCommand::Tenants(command) => command.run(&mut connect().await?).await,
            CliCommand::Workers(command) => command.run(&mut connect().await?).await,
            CliCommand::Load(command) => command.run(&mut connect().await?).await,
        }
    }
}

/// Treats an empty environment variable as unset, so that compose files and unit files can pass on variables that may be
/// empty.
fn without_empty_variables(command: clap::Command) -> clap::Command {
    let option = |arg: Arg| {
        let is_empty = arg.get_env().is_some_and(|name| std::env::var_os(name).is_some_and(|value| value.is_empty()));
        if is_empty { arg.env(Resettable::<OsStr>::Reset) } else { arg }
    };
    command.mut_args(option).mut_subcommands(without_empty_variables)
}

fn signed(command: clap::Command) -> clap::Command {
    let option = |arg: Arg| {
        if arg.is_positional() || !arg.get_action().takes_values() {
            return arg;
        }
        // `-3d` is no number, and the parsers of spans and times refuse a leading hyphen.
        let kind = arg.get_value_parser().type_id();
        let is_time = kind == TypeId::of::<Duration>() || kind == TypeId::of::<Timestamp>();
        arg.allow_negative_numbers(true).allow_hyphen_values(is_time)
    };
    command.mut_args(option).mut_subcommands(signed)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;

    /// Help texts by file name, of every command there is.
    fn help_texts(command: &clap::Command, name: &str, texts: &mut BTreeMap<String, String>) {
        texts.insert(format!("{name}.txt"), command.clone().render_long_help().to_string());
        for sub in command.get_subcommands() {
            help_texts(sub, &format!("{name}-{}", sub.get_name()), texts);
        }
    }

    #[test]
    fn the_help_of_every_command_is_as_expected() {
        let mut root = Cli::command().term_width(0);
        root.build();
        let mut texts = BTreeMap::new();
        help_texts(&root, "lockgate", &mut texts);
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            for (name, text) in &texts {
                std::fs::write(folder.join(name), text).expect("written");
            }
        }
        let mut expected = BTreeMap::new();
        for entry in std::fs::read_dir(&folder).expect("the folder of expected texts") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            expected.insert(name, std::fs::read_to_string(&path).expect("text"));
        }
        assert_eq!(texts.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "one file per command");
        for (name, text) in &texts {
            assert_eq!(text, &expected[name], "{name} differs; UPDATE_EXPECT=1 rewrites it");
        }
    }

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
        Cli::grammar().debug_assert();
    }

    #[test]
    fn what_is_below_zero_is_refused_by_the_name_of_its_option() {
        for (line, option) in [
            ("submit job.noop --max-attempts -1", "--max-attempts"),
            ("submit job.noop --delay -5s --wait", "--delay"),
            ("submit job.noop --not-before -5s", "--not-before"),
            ("jobs --limit -1", "--limit"),
            ("dlq replay --all --rate -5", "--rate"),
            ("auth key create ann --role viewer --expires -3d", "--expires"),
            ("serve --lost-after -10s", "--lost-after"),
        ] {
            let words = std::iter::once("lockgate").chain(line.split(' '));
            let error = Cli::read(words).expect_err("below zero").to_string();
            assert!(error.contains(&format!("for '{option} <")), "{line}: {error}");
        }
    }

    #[test]
    fn a_key_is_never_printed_and_a_certificate_needs_its_key() {
        let cli = Cli::try_parse_from(["lockgate", "queues", "--api-key", "lgk_secret"]).expect("good usage");
        let access = cli.connection.access().expect("good usage");
        assert_eq!(access.credential, Some(Credential::from("lgk_secret")));
        assert!(!format!("{cli:?} {access:?}").contains("lgk_secret"));
        let none = Cli::try_parse_from(["lockgate", "queues", "--api-key", ""]).expect("good usage");
        assert_eq!(none.connection.access().expect("good usage").credential, None);
        let half = Cli::try_parse_from(["lockgate", "queues", "--client-cert", "c.pem"]).expect("good usage");
        assert!(half.connection.access().is_err());
    }

    #[test]
    fn global_options_may_follow_the_command() {
        let cli = Cli::try_parse_from(["lockgate", "queues", "--server", "http://x", "--json"]).expect("good usage");
        assert_eq!(cli.connection.server, "http://x");
        assert!(cli.output().is_json());
    }
}

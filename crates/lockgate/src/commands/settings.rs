//! `lockgate config show`: what a server would run with, and where each of its settings comes from.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Subcommand};
use serde::Serialize;

use crate::cli::Cli;
use crate::error::{CliError, Exit};
use crate::output::{Output, TableCell, Tone};

/// Look at the settings of a server
#[derive(Args, Debug)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: SettingsCommand,
}

#[derive(Debug, Subcommand)]
enum SettingsCommand {
    Show(ShowSettings),
}

/// Show what `lockgate serve` would run with: every setting, its value and where it comes from; secrets are masked
#[derive(Args, Debug)]
#[command(after_long_help = "Example: lockgate config show -- --listen 0.0.0.0:8080 --auth")]
struct ShowSettings {
    /// Options as for `lockgate serve`
    #[arg(last = true, value_name = "OPTIONS")]
    options: Vec<String>,
}

/// What a setting takes that is a secret itself. Others name files, whose contents are not shown, or addresses.
const SECRET: &str = "KEY";
/// Settings with secrets among other things.
const WITH_SECRETS: [&str; 1] = ["otlp_headers"];
/// Said instead of a secret.
const MASK: &str = "***";
/// How to reach a server, which this is not about.
const NOT_OF_SERVE: [&str; 9] =
    ["server", "tenant", "actor", "actor_type", "api_key", "tls_ca", "client_cert", "client_key", "help"];

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Setting {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    /// default, environment, command line, or unset
    from: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<String>,
}

impl ConfigArgs {
    pub(crate) fn run(self, out: Output) -> Result<Exit, CliError> {
        match self.command {
            SettingsCommand::Show(command) => command.run(out),
        }
    }
}

impl ShowSettings {
    fn run(self, out: Output) -> Result<Exit, CliError> {
        let settings = settings(&self.options)?;
        if out.is_json() {
            out.json(&settings)?;
        } else {
            out.line(&table(&settings, out))?;
        }
        Ok(Exit::Success)
    }
}

fn settings(options: &[String]) -> Result<Vec<Setting>, CliError> {
    let mut root = Cli::grammar();
    root.build();
    let given = ["lockgate".to_owned(), "serve".to_owned()].into_iter().chain(options.iter().cloned());
    let matches = root.clone().try_get_matches_from(given).map_err(|error| CliError::Usage(error.to_string()))?;
    let serve = root.find_subcommand("serve").zip(matches.subcommand_matches("serve"));
    let Some((command, matches)) = serve else { return Err(CliError::Usage("there is no `serve`".to_owned())) };
    let of_serve = |arg: &&Arg| arg.get_long().is_some() && !NOT_OF_SERVE.contains(&arg.get_id().as_str());
    Ok(command.get_arguments().filter(of_serve).map(|arg| setting(arg, matches)).collect())
}

fn setting(arg: &Arg, matches: &ArgMatches) -> Setting {
    let id = arg.get_id().as_str();
    let from = match matches.value_source(id) {
        Some(ValueSource::CommandLine) => "command line",
        Some(ValueSource::EnvVariable) => "environment",
        Some(_) => "default",
        None => "unset",
    };
    let raw = matches.get_raw(id).map(|values| values.map(|value| value.to_string_lossy()).collect::<Vec<_>>().join(","));
    let takes = arg.get_value_names().unwrap_or_default();
    let is_secret = WITH_SECRETS.contains(&id) || takes.iter().any(|name| name.as_str() == SECRET);
    let value = raw.map(|value| if is_secret { MASK.to_owned() } else { masked(&value) });
    Setting {
        name: format!("--{}", arg.get_long().unwrap_or(id)),
        value,
        from,
        variable: arg.get_env().map(|name| name.to_string_lossy().into_owned()),
    }
}

/// An address without its password. Of several, each.
fn masked(value: &str) -> String {
    // Said in words instead, as PostgreSQL allows: too many ways to write it to take only the secret out.
    if value.contains("password") {
        return MASK.to_owned();
    }
    let one = |address: &str| {
        let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
        // A password may have an @ of its own, a path may have one too.
        let authority = rest.find(['/', '?']).unwrap_or(rest.len());
        let Some((login, host)) = rest[..authority].rsplit_once('@') else { return address.to_owned() };
        let tail = &rest[authority..];
        // A login without a name is a token.
        let name = login.split_once(':').map_or("", |(name, _)| name);
        let login = if login.contains(':') { format!("{name}:{MASK}") } else { MASK.to_owned() };
        format!("{scheme}://{login}@{host}{tail}")
    };
    // A password may have a comma; between addresses another address follows.
    let several = value.split(',').all(|part| part.contains("://"));
    if several { value.split(',').map(one).collect::<Vec<_>>().join(",") } else { one(value) }
}

fn table(settings: &[Setting], out: Output) -> String {
    let row = |setting: &Setting| {
        let tone = if setting.from == "default" || setting.from == "unset" { Tone::Faint } else { Tone::Good };
        vec![
            TableCell::text(&setting.name),
            TableCell::text(setting.value.as_deref().unwrap_or("-")),
            TableCell::text(setting.from).toned(tone),
            TableCell::text(setting.variable.as_deref().unwrap_or("-")),
        ]
    };
    out.table(&["setting", "value", "from", "variable"], &settings.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(options: &[&str]) -> Vec<Setting> {
        settings(&options.iter().map(|option| (*option).to_owned()).collect::<Vec<_>>()).expect("good usage")
    }

    fn value<'a>(settings: &'a [Setting], name: &str) -> (&'a str, Option<&'a str>) {
        let found = settings.iter().find(|setting| setting.name == name).expect(name);
        (found.from, found.value.as_deref())
    }

    #[test]
    fn every_setting_says_where_it_comes_from() {
        let settings = shown(&["--listen", "127.0.0.1:1", "--auth"]);
        assert_eq!(value(&settings, "--listen"), ("command line", Some("127.0.0.1:1")));
        assert_eq!(value(&settings, "--metrics"), ("default", Some("127.0.0.1:9090")));
        assert_eq!(value(&settings, "--quotas").0, "unset");
        assert!(matches!(value(&settings, "--auth"), ("command line", Some(_))));
    }

    #[test]
    fn no_secret_is_shown() {
        let settings = shown(&[
            "--database-url",
            "postgres://ann:pa@ss@db:5432/lockgate?sslmode=require",
            "--redis-url",
            "redis://:hunter2@cache/0",
            "--nats-url",
            "nats://token@one:4222,nats://two:4222",
            "--safety-kernel",
            "http://127.0.0.1:1",
            "--safety-kernel-key",
            "lgk_id_secret",
            "--nats-submit-key",
            "lgk_id_secret",
            "--nats-worker-key",
            "lgk_id_secret",
            "--otlp-headers",
            "key=secret",
        ]);
        let expect = |name: &str, text: &str| assert_eq!(value(&settings, name).1, Some(text));
        expect("--database-url", "postgres://ann:***@db:5432/lockgate?sslmode=require");
        let in_words = shown(&["--database-url", "host=db password=hunter2"]);
        assert_eq!(value(&in_words, "--database-url").1, Some("***"));
        expect("--redis-url", "redis://:***@cache/0");
        for key in ["--safety-kernel-key", "--nats-submit-key", "--nats-worker-key"] {
            expect(key, "***");
        }
        expect("--otlp-headers", "***");
        expect("--nats-url", "nats://***@one:4222,nats://two:4222");
    }

    /// A new secret is masked by what it says it takes: so nothing that sounds like one may say otherwise.
    #[test]
    fn whatever_sounds_like_a_secret_is_one_or_names_a_file() {
        let mut root = Cli::grammar();
        root.build();
        let serve = root.find_subcommand("serve").expect("serve");
        for arg in serve.get_arguments() {
            let id = arg.get_id().as_str();
            let sounds = ["key", "secret", "token", "password"].iter().any(|word| id.contains(word));
            // A flag, such as one that makes a key, holds no secret.
            let sounds = sounds && arg.get_action().takes_values();
            let takes = arg.get_value_names().unwrap_or_default().first().map(|name| name.as_str());
            assert!(
                !sounds || takes.is_some_and(|takes| takes == SECRET || takes.contains("FILE")),
                "--{id} takes {takes:?}"
            );
        }
    }

    #[test]
    fn settings_that_serve_would_refuse_are_refused_here() {
        assert!(settings(&["--lisen".to_owned()]).is_err());
    }
}

//! Which crate may depend on which, and where the clients of outside products live.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use serde_json::Value;

use super::{Severity, TidyFinding};

/// The direction of the architecture. `*` is everything that ships. Adapters are the crates in `adapters/`.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("lockgate-contract", &[]),
    ("lockgate-core", &["lockgate-contract"]),
    ("lockgate-ports", &["lockgate-core"]),
    ("lockgate-engine", &["lockgate-core", "lockgate-ports"]),
    ("lockgate-proto", &[]),
    ("lockgate-api", &["lockgate-core", "lockgate-proto"]),
    ("lockgate-gateway", &["lockgate-core", "lockgate-ports", "lockgate-engine", "lockgate-proto", "lockgate-api"]),
    ("lockgate-worker", &["lockgate-contract", "lockgate-proto", "lockgate-tls"]),
    ("lockgate-client", &["lockgate-contract", "lockgate-proto", "lockgate-tls"]),
    ("lockgate-model", &["lockgate-core", "lockgate-ports", "lockgate-sql"]),
    ("lockgate-conformance", &["lockgate-core", "lockgate-ports", "lockgate-model"]),
    ("lockgate-sim", &["lockgate-core", "lockgate-ports", "lockgate-engine", "lockgate-memory", "lockgate-model"]),
    ("lockgate-testbed", &[]),
    ("lockgate-tls", &[]),
    ("lockgate", &["*"]),
    ("xtask", &["lockgate-testbed"]),
];
const ADAPTERS_MAY_USE: [&str; 3] = ["lockgate-core", "lockgate-ports", "lockgate-tls"];
/// What single adapters may use besides: the public contract where they speak it, and how SQL stores encode rows.
const SOME_ADAPTERS_MAY_USE: [(&str, &[&str]); 4] = [
    ("adapters/kernel/", &["lockgate-proto", "lockgate-api"]),
    ("adapters/nats/", &["lockgate-proto"]),
    ("adapters/postgres/", &["lockgate-sql"]),
    ("adapters/sqlite/", &["lockgate-sql"]),
];

/// What exists for tests. Nothing that ships is built on it.
const FOR_TESTS: [&str; 4] = ["lockgate-model", "lockgate-conformance", "lockgate-sim", "lockgate-testbed"];

/// Clients of outside products, and the one folder that may use each.
const CLIENTS: [(&str, &str); 7] = [
    ("rusqlite", "adapters/sqlite/"),
    ("tokio-postgres", "adapters/postgres/"),
    ("deadpool-postgres", "adapters/postgres/"),
    ("sqlx", "adapters/postgres/"),
    ("redis", "adapters/redis/"),
    ("fred", "adapters/redis/"),
    ("async-nats", "adapters/nats/"),
];

/// The decisions must stay pure: nothing that waits, reads a clock or draws a random number. `jiff` is there for calendars and
/// zones; what in it reads the system is forbidden by name in clippy.toml.
const IMPURE: [&str; 12] = [
    "tokio",
    "async-trait",
    "async-std",
    "futures",
    "futures-util",
    "smol",
    "rand",
    "getrandom",
    "fastrand",
    "time",
    "chrono",
    "reqwest",
];

/// One crate of the workspace as its manifest says.
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root.
    pub(crate) manifest: String,
    pub(crate) dependencies: Vec<Dependency>,
}

pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Used by tests only.
    pub(crate) dev: bool,
}

/// Reads the answer of `cargo metadata --no-deps`.
pub(crate) fn packages(metadata: &str) -> anyhow::Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata)?;
    let root = metadata["workspace_root"].as_str().context("no workspace_root")?;
    let list = metadata["packages"].as_array().context("no packages")?;
    list.iter()
        .map(|package| read_package(package, root).context("a package lacks its name, path or dependencies"))
        .collect()
}

fn read_package(package: &Value, root: &str) -> Option<Package> {
    let manifest = package["manifest_path"].as_str()?.strip_prefix(root)?.trim_start_matches('/').to_owned();
    let read = |dependency: &Value| {
        Some(Dependency { name: dependency["name"].as_str()?.to_owned(), dev: dependency["kind"] == "dev" })
    };
    let dependencies = package["dependencies"].as_array()?.iter().map(read).collect::<Option<_>>()?;
    Some(Package { name: package["name"].as_str()?.to_owned(), manifest, dependencies })
}

pub(crate) fn check(packages: &[Package]) -> Vec<TidyFinding> {
    let ours: BTreeSet<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let mut found = Vec::new();
    for package in packages {
        let mut refuse = |text: String| found.push(TidyFinding::of_file(Severity::Refuse, &package.manifest, text));
        for dependency in &package.dependencies {
            // Tests that turn features of their own crate on.
            if dependency.dev && dependency.name == package.name {
                continue;
            }
            if ours.contains(dependency.name.as_str()) {
                if let Some(text) = bad_edge(package, dependency, packages) {
                    refuse(text);
                }
            } else if let Some(text) = misplaced(package, dependency) {
                refuse(text);
            }
        }
    }
    found
}

fn bad_edge(package: &Package, dependency: &Dependency, packages: &[Package]) -> Option<String> {
    let (from, to) = (package.name.as_str(), dependency.name.as_str());
    if dependency.dev {
        let back = reaches(to, from, packages);
        return back.then(|| format!("tests of {from} must not use {to}, which is built on {from}"));
    }
    let allowed = allowed_edges(package);
    let fine = allowed.contains(&to) || (allowed.contains(&"*") && !FOR_TESTS.contains(&to));
    if !fine && allowed.contains(&"*") {
        return Some(format!("{to} exists for tests: {from} ships, so only its tests may use it"));
    }
    (!fine).then(|| {
        format!(
            "{from} must not use {to}; it may use {}",
            if allowed.is_empty() { "nothing of ours".into() } else { allowed.join(", ") }
        )
    })
}

fn allowed_edges(package: &Package) -> Vec<&'static str> {
    if package.manifest.starts_with("adapters/") {
        let more = SOME_ADAPTERS_MAY_USE.into_iter().filter(|(folder, _)| package.manifest.starts_with(folder));
        return ADAPTERS_MAY_USE.into_iter().chain(more.flat_map(|(_, names)| names.iter().copied())).collect();
    }
    MAY_USE.iter().find(|(name, _)| *name == package.name).map(|(_, list)| list.to_vec()).unwrap_or_default()
}

/// Whether `from` is built on `to`, not counting what only tests use.
fn reaches(from: &str, to: &str, packages: &[Package]) -> bool {
    let edges: BTreeMap<&str, &Package> = packages.iter().map(|package| (package.name.as_str(), package)).collect();
    let (mut open, mut seen) = (vec![from], BTreeSet::new());
    while let Some(name) = open.pop() {
        if name == to {
            return true;
        }
        if seen.insert(name) {
            let next = edges.get(name).into_iter().flat_map(|package| &package.dependencies);
            open.extend(next.filter(|dependency| !dependency.dev).map(|dependency| dependency.name.as_str()));
        }
    }
    false
}

fn misplaced(package: &Package, dependency: &Dependency) -> Option<String> {
    let name = dependency.name.as_str();
    if package.name == "lockgate-core" && !dependency.dev && IMPURE.contains(&name) {
        return Some(format!("core decides and nothing else: it must not use {name}"));
    }
    let (_, home) = CLIENTS.iter().find(|(client, _)| *client == name)?;
    // A test may damage or read what a product stored; only what ships goes through the port.
    (!dependency.dev && !package.manifest.starts_with(home))
        .then(|| format!("{name} is used in {home} only; go through its port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, folder: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies =
            dependencies.iter().map(|(name, dev)| Dependency { name: (*name).to_owned(), dev: *dev }).collect();
        Package { name: name.to_owned(), manifest: format!("{folder}/Cargo.toml"), dependencies }
    }

    fn core() -> Package {
        package("lockgate-core", "crates/core", &[("serde", false)])
    }

    #[test]
    fn the_direction_of_the_architecture_is_kept() {
        let ports = package("lockgate-ports", "crates/ports", &[("lockgate-core", false), ("tokio", false)]);
        assert!(check(&[core(), ports]).is_empty());
        let back = package("lockgate-core", "crates/core", &[("lockgate-ports", false)]);
        assert_eq!(check(&[back, package("lockgate-ports", "crates/ports", &[])]).len(), 1);
    }

    #[test]
    fn an_adapter_knows_ports_and_core_only() {
        let engine = package("lockgate-engine", "crates/engine", &[]);
        let adapter = package("lockgate-redis", "adapters/redis", &[("lockgate-core", false), ("lockgate-engine", false)]);
        let found = check(&[core(), engine, adapter]);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("lockgate-redis must not use lockgate-engine"));
    }

    #[test]
    fn tests_may_use_anything_that_does_not_point_back() {
        let ports = package("lockgate-ports", "crates/ports", &[("lockgate-core", false)]);
        let sideways = package("lockgate-engine", "crates/engine", &[("lockgate-sqlite", true)]);
        let sqlite = package("lockgate-sqlite", "adapters/sqlite", &[("lockgate-ports", false)]);
        assert!(check(&[core(), ports, sideways, sqlite]).is_empty());
        let core_tests = package("lockgate-core", "crates/core", &[("lockgate-ports", true)]);
        let ports = package("lockgate-ports", "crates/ports", &[("lockgate-core", false)]);
        assert_eq!(check(&[core_tests, ports]).len(), 1);
    }

    #[test]
    fn what_exists_for_tests_does_not_ship() {
        let suite = || package("lockgate-conformance", "crates/conformance", &[]);
        assert!(check(&[suite(), package("lockgate", "crates/lockgate", &[("lockgate-conformance", true)])]).is_empty());
        let found = check(&[suite(), package("lockgate", "crates/lockgate", &[("lockgate-conformance", false)])]);
        assert_eq!(found.len(), 1);
        assert!(found[0].text.contains("lockgate-conformance exists for tests"));
    }

    #[test]
    fn clients_stay_in_their_adapter() {
        assert!(check(&[package("lockgate-sqlite", "adapters/sqlite", &[("rusqlite", false)])]).is_empty());
        assert_eq!(check(&[package("lockgate-engine", "crates/engine", &[("rusqlite", false)])]).len(), 1);
        assert!(check(&[package("lockgate", "crates/lockgate", &[("rusqlite", true)])]).is_empty());
    }

    #[test]
    fn core_stays_pure() {
        assert_eq!(check(&[package("lockgate-core", "crates/core", &[("tokio", false)])]).len(), 1);
        assert!(check(&[package("lockgate-core", "crates/core", &[("rand", true)])]).is_empty());
    }

    #[test]
    fn a_crate_nobody_has_placed_may_use_nothing_of_ours() {
        let stranger = package("lockgate-common", "crates/common", &[("lockgate-core", false)]);
        assert_eq!(check(&[core(), stranger]).len(), 1);
    }

    #[test]
    fn manifests_are_read_from_cargo_metadata() {
        let metadata = r#"{"workspace_root": "/x", "packages": [{"name": "a", "manifest_path": "/x/crates/a/Cargo.toml",
            "dependencies": [{"name": "b", "kind": null}, {"name": "c", "kind": "dev"}]}]}"#;
        let packages = packages(metadata).expect("well formed");
        assert_eq!(packages[0].manifest, "crates/a/Cargo.toml");
        assert_eq!(packages[0].dependencies.iter().map(|d| d.dev).collect::<Vec<_>>(), [false, true]);
    }
}

//! Which configuration files apply: those that options name, otherwise those at the conventional places.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Serve;
use super::files::{FileKind, POLICY, POOLS, QUOTAS, TIMEOUTS};
use super::roles::RoleSet;

/// Relative to the folder in which the server was started.
const FOLDER: &str = "config";

/// A configuration file to be watched.
pub(super) struct NamedFile {
    pub(super) kind: &'static FileKind,
    pub(super) path: PathBuf,
    /// No option named the file; it was found at its conventional place.
    pub(super) found: bool,
}

impl Serve {
    /// An option wins over a found file. A process with the role kernel runs no jobs, and one with a remote kernel has no
    /// policy of its own.
    pub(super) fn config_files(&self, roles: RoleSet, folder: &Path) -> Vec<NamedFile> {
        let routes = !roles.judges_only();
        let judges = self.governance.safety_kernel.is_none();
        [
            (&POLICY, &self.governance.policy, judges.then_some("safety.yaml")),
            (&POOLS, &self.routing.pools, routes.then_some("pools.yaml")),
            (&TIMEOUTS, &self.routing.timeouts, routes.then_some("timeouts.yaml")),
            (&QUOTAS, &self.routing.quotas, None),
        ]
        .into_iter()
        .filter_map(|(kind, named, usual)| {
            let found = || {
                let path = Path::new(FOLDER).join(usual?);
                let is_there = !self.routing.no_config && !is_absent(&folder.join(&path));
                is_there.then_some(NamedFile { kind, path, found: true })
            };
            let named = named.clone().map(|path| NamedFile { kind, path, found: false });
            named.or_else(found)
        })
        .collect()
    }
}

/// A file that exists and cannot be read stops the start, as if an option named it: a policy behind a link into a folder
/// that is not mounted yet must not be ignored.
fn is_absent(path: &Path) -> bool {
    std::fs::symlink_metadata(path)
        .is_err_and(|error| matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What counts in a folder with these files, with a `+` before those that were only found.
    fn counts(there: &[&str], words: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join(FOLDER)).expect("made");
        for name in there {
            std::fs::write(folder.path().join(FOLDER).join(name), "").expect("written");
        }
        let serve = Serve::typed(words);
        let files = serve.config_files(serve.roles().expect("good roles"), folder.path());
        let shown = |file: &NamedFile| format!("{}{}", if file.found { "+" } else { "" }, file.path.display());
        files.iter().map(shown).collect()
    }

    #[test]
    fn files_where_the_requirement_documents_have_them_count_unless_an_option_says_otherwise() {
        let all = ["pools.yaml", "timeouts.yaml", "safety.yaml", "quotas.yaml"];
        assert_eq!(counts(&[], &[]), [""; 0]);
        assert_eq!(counts(&all, &[]), ["+config/safety.yaml", "+config/pools.yaml", "+config/timeouts.yaml"]);
        assert_eq!(counts(&["pools.yaml"], &["--timeouts", "t.yaml"]), ["+config/pools.yaml", "t.yaml"]);
        assert_eq!(counts(&all, &["--pools", "p.yaml", "--policy", "s.yaml", "--no-config"]), ["s.yaml", "p.yaml"]);
        assert_eq!(counts(&all, &["--roles", "kernel"]), ["+config/safety.yaml"]);
        assert_eq!(
            counts(&all, &["--safety-kernel", "http://127.0.0.1:1"]),
            ["+config/pools.yaml", "+config/timeouts.yaml"]
        );
    }

    #[test]
    fn a_file_that_is_there_and_cannot_be_reached_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let link = folder.path().join("safety.yaml");
        assert!(is_absent(&link) && is_absent(&folder.path().join("none/safety.yaml")));
        std::os::unix::fs::symlink("not-mounted-yet/safety.yaml", &link).expect("linked");
        assert!(!is_absent(&link), "its start fails, instead of going on without a policy");
    }
}

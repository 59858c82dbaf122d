//! Folders that do not outlive their process for long.

use std::path::Path;

use tempfile::TempDir;

const PREFIX: &str = "lockgate-testbed-";

/// A new temporary folder. Those of processes that ended without tidying up are removed first: a value in a `static` is never
/// dropped, and a killed test drops nothing.
pub(crate) fn fresh() -> std::io::Result<TempDir> {
    sweep();
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir()
}

fn sweep() {
    let Ok(entries) = std::fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if owner.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            // Another process may be removing it too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

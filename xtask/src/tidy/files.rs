//! The text files of the repository.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;

use super::source::Source;

/// Build output and what a running server leaves behind.
const SKIPPED: [&str; 4] = ["target", "lockgate-data", ".git", "node_modules"];
const TEXT_EXTENSIONS: [&str; 11] = ["rs", "toml", "md", "proto", "sql", "yaml", "yml", "json", "sh", "py", "txt"];
const TEXT_NAMES: [&str; 4] = ["Makefile", "run", "Dockerfile", "LICENSE"];

/// Path relative to the root → content, in order of path.
pub(crate) fn read(root: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut texts = BTreeMap::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_symlink() || SKIPPED.contains(&name) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if is_text(&path, name) {
                let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
                let relative = path.strip_prefix(root)?.to_string_lossy().into_owned();
                texts.insert(relative, text);
            }
        }
    }
    Ok(texts)
}

fn is_text(path: &Path, name: &str) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    TEXT_EXTENSIONS.contains(&extension) || TEXT_NAMES.contains(&name)
}

/// The Rust files, with those marked that another file includes for tests only.
pub(crate) fn sources(texts: &BTreeMap<String, String>) -> Vec<Source> {
    let rust = texts.iter().filter(|(path, _)| path.ends_with(".rs"));
    let mut sources: Vec<Source> = rust.map(|(path, text)| Source::new(path.as_str(), text.as_str())).collect();
    let for_tests: BTreeSet<String> = sources.iter().flat_map(test_module_paths).collect();
    for source in &mut sources {
        let stem = source.path.trim_end_matches(".rs");
        source.test_file |= for_tests.iter().any(|module| stem == module || stem.starts_with(&format!("{module}/")));
    }
    sources
}

/// Where the modules that a file declares for tests only live, without `.rs`.
fn test_module_paths(source: &Source) -> Vec<String> {
    let stem = source.path.trim_end_matches(".rs");
    let (folder, name) = stem.rsplit_once('/').unwrap_or(("", stem));
    let home = if matches!(name, "mod" | "lib" | "main") { folder } else { stem };
    source.outlined_test_modules().into_iter().map(|module| format!("{home}/{module}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_included_for_tests_are_test_files() {
        let declares = "#[cfg(test)]\nmod properties;\n".to_owned();
        let texts = BTreeMap::from([
            ("src/job/mod.rs".to_owned(), declares.clone()),
            ("src/job/properties.rs".to_owned(), String::new()),
            ("src/job/state.rs".to_owned(), declares),
            ("src/job/state/properties/deep.rs".to_owned(), String::new()),
        ]);
        let marked: Vec<bool> = sources(&texts).iter().map(|source| source.test_file).collect();
        assert_eq!(marked, [false, true, false, true]);
    }
}

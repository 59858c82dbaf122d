//! Grafana dashboards, written as code so that every query can be compared with the metrics there are.

mod dags;
mod governance;
mod internals;
mod overview;
mod panel;
mod pools;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context;

use panel::Dashboard;

pub(crate) const FOLDER: &str = "deploy/grafana/dashboards";

fn all() -> [Dashboard; 5] {
    [overview::dashboard(), pools::dashboard(), governance::dashboard(), dags::dashboard(), internals::dashboard()]
}

/// File name → content.
fn files() -> anyhow::Result<BTreeMap<String, String>> {
    let file = |dashboard: &Dashboard| {
        let text = serde_json::to_string_pretty(&dashboard.json()).context("a dashboard could not be written")?;
        Ok((format!("{}.json", dashboard.name), text + "\n"))
    };
    all().iter().map(file).collect()
}

/// Writes every dashboard.
pub(crate) fn write(root: &Path) -> anyhow::Result<bool> {
    let folder = root.join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    for (name, text) in files()? {
        let path = folder.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
    }
    println!("dashboards: {} files in {FOLDER}", files()?.len());
    Ok(true)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::catalogue::Catalogue;
    use crate::root;

    fn queries(dashboard: &Value) -> Vec<String> {
        let panels = dashboard["panels"].as_array().into_iter().flatten();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        targets.filter_map(|target| target["expr"].as_str().map(str::to_owned)).collect()
    }

    #[test]
    fn the_dashboards_of_the_repository_are_those_of_the_code() {
        let folder = root().expect("a root").join(FOLDER);
        let mut written = BTreeMap::new();
        for entry in std::fs::read_dir(folder).expect("the folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            written.insert(name, std::fs::read_to_string(&path).expect("text"));
        }
        let files = files().expect("dashboards");
        assert_eq!(written.keys().collect::<Vec<_>>(), files.keys().collect::<Vec<_>>(), "one file a dashboard");
        for (name, text) in &files {
            assert_eq!(&written[name], text, "{name} differs; `cargo xtask dashboards` rewrites it");
        }
    }

    #[test]
    fn every_query_asks_for_a_metric_that_there_is() {
        let root = root().expect("a root");
        let catalogue = Catalogue::read(&root).expect("the reference");
        let mut asked = 0;
        for dashboard in all() {
            for query in queries(&dashboard.json()) {
                asked += 1;
                let unknown = catalogue.unknown(&query);
                assert!(unknown.is_empty(), "{}: {query} asks for {unknown:?}", dashboard.name);
                assert!(query.contains("lockgate"), "{}: {query}", dashboard.name);
            }
        }
        assert!(asked > 40, "only {asked} queries were found");
    }
}

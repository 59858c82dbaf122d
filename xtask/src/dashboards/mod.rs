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

/// Every query, with the dashboard that asks it.
pub(crate) fn queries() -> Vec<(&'static str, String)> {
    let of = |dashboard: &Dashboard| {
        let json = dashboard.json();
        let panels = json["panels"].as_array().into_iter().flatten();
        let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
        let texts = targets.filter_map(|target| target["expr"].as_str());
        texts.map(|text| (dashboard.name, text.to_owned())).collect::<Vec<_>>()
    };
    all().iter().flat_map(of).collect()
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
    use super::*;
    use crate::catalogue::Catalogue;
    use crate::root;

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
        let queries = queries();
        for (dashboard, query) in &queries {
            let unknown = catalogue.unknown(query);
            assert!(unknown.is_empty(), "{dashboard}: {query} asks for {unknown:?}");
            assert!(query.contains("lockgate"), "{dashboard}: {query}");
        }
        assert!(queries.len() > 40, "only {} queries were found", queries.len());
    }
}

//! The metrics there are: the tables of the reference, and what the recording rules add to them.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, ensure};

/// Names that a query may ask for.
pub(crate) struct Catalogue(BTreeSet<String>);

impl Catalogue {
    pub(crate) fn read(root: &Path) -> anyhow::Result<Self> {
        let text = |path: &str| std::fs::read_to_string(root.join(path)).with_context(|| path.to_owned());
        let mut names = families(&text("docs/metrics.md")?);
        ensure!(names.len() > 40, "the reference of metrics could not be read");
        names.extend(recorded(&text("deploy/prometheus/recording.yaml")?));
        Ok(Self(names))
    }

    /// Names in a query that nothing has.
    pub(crate) fn unknown(&self, query: &str) -> Vec<String> {
        names(query).into_iter().filter(|name| !self.0.contains(name)).collect()
    }
}

/// Rows of the form "name, type, labels, meaning". A histogram is asked for by its parts.
fn families(page: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| `lockgate_")) {
        let mut cells = row.split('|').map(str::trim);
        let (Some(name), Some(kind)) = (cells.next(), cells.next()) else { continue };
        let name = format!("lockgate_{}", name.trim_end_matches('`'));
        match kind {
            "histogram" => names.extend(["bucket", "sum", "count"].map(|part| format!("{name}_{part}"))),
            "counter" | "gauge" => drop(names.insert(name)),
            _ => {}
        }
    }
    names
}

fn recorded(rules: &str) -> impl Iterator<Item = String> {
    rules.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).map(str::to_owned)
}

/// Everything in a query that looks like a metric of ours; label values, which are quoted, are none.
fn names(query: &str) -> BTreeSet<String> {
    let unquoted: String = query.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let words = unquoted.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("lockgate_") || word.starts_with("lockgate:")).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_a_query_are_found_and_label_values_are_not() {
        let query = r#"sum by (lockgate) (rate(lockgate_a_total{loop!~"lockgate:x|lockgate_y"}[5m])) / lockgate:b"#;
        assert_eq!(names(query).into_iter().collect::<Vec<_>>(), ["lockgate:b", "lockgate_a_total"]);
    }

    #[test]
    fn a_histogram_is_known_by_its_parts_and_what_is_not_in_the_reference_is_unknown() {
        let page = "| `lockgate_a_total` | counter | x | y |\n| `lockgate_h` | histogram |  | z |\n| `b` | `lockgate_c` |\n";
        let catalogue = Catalogue(families(page));
        assert_eq!(catalogue.unknown("lockgate_a_total + lockgate_h_bucket"), [""; 0]);
        assert_eq!(catalogue.unknown("lockgate_a + lockgate_h + lockgate_c"), ["lockgate_a", "lockgate_c", "lockgate_h"]);
    }
}

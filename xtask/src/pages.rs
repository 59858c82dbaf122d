//! Generated tables in hand-written pages: each stands between two marks, and a run replaces what is between them.

use std::path::Path;

use anyhow::{Context, bail};

pub(crate) fn rewrite(path: &Path, tables: &[(&str, String)]) -> anyhow::Result<()> {
    let mut page = std::fs::read_to_string(path)?;
    for (mark, table) in tables {
        page = replaced(&page, mark, table).with_context(|| path.display().to_string())?;
    }
    Ok(std::fs::write(path, page)?)
}

/// The page with another table between its marks.
fn replaced(page: &str, mark: &str, table: &str) -> anyhow::Result<String> {
    let (begin, end) = (format!("<!-- {mark}: generated -->\n"), format!("<!-- {mark}: end -->"));
    let parts = page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
    let Some((before, after)) = parts else { bail!("there is no place for the table {mark:?}") };
    Ok(format!("{before}{begin}{table}{end}{after}"))
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_takes_the_place_of_the_one_before() {
        let page = "before\n<!-- a: generated -->\nold\n<!-- a: end -->\nafter\n";
        let new = replaced(page, "a", "new\n").expect("marks");
        assert_eq!(new, "before\n<!-- a: generated -->\nnew\n<!-- a: end -->\nafter\n");
        assert!(replaced(page, "b", "new\n").is_err());
    }
}

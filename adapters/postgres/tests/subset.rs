//! Statements keep to what both PostgreSQL and CockroachDB speak.

use std::path::Path;

/// Words that only one of them knows, or that only one of them means; and types that are not as wide in both.
const FORBIDDEN: [&str; 18] = [
    "ADVISORY",
    "LISTEN",
    "NOTIFY",
    "TRIGGER",
    "PLPGSQL",
    "DO $$",
    "PARTITION",
    "SERIAL",
    "SMALLSERIAL",
    "BIGSERIAL",
    "INTEGER",
    "INT",
    "SMALLINT",
    "SKIP LOCKED",
    "NOWAIT",
    "UNLOGGED",
    "CTID",
    "XMIN",
];

fn files(folder: &str, ending: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == ending) {
                found.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found
}

fn is_word(text: &str, at: usize, length: usize) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
    !part(text[..at].chars().next_back()) && !part(text[at + length..].chars().next())
}

/// Statements without their comments; of Rust only what begins like one.
fn statements() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (path, text) in files("queries", "sql").into_iter().chain(files("migrations", "sql")) {
        let sql: String =
            text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
        found.push((path, sql));
    }
    let verbs = ["SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "BEGIN", "ALTER", "WITH"];
    for (path, text) in files("src", "rs") {
        let literals =
            text.split('"').skip(1).step_by(2).filter(|literal| verbs.iter().any(|verb| literal.trim().starts_with(verb)));
        found.extend(literals.map(|literal| (path.clone(), literal.to_owned())));
    }
    found
}

#[test]
fn no_statement_leaves_the_subset() {
    let statements = statements();
    assert!(statements.len() > 60, "only {} were found", statements.len());
    for (path, sql) in statements {
        let upper = sql.to_ascii_uppercase();
        for word in FORBIDDEN {
            let hit = upper.match_indices(word).find(|(at, _)| is_word(&upper, *at, word.len()));
            assert!(hit.is_none(), "{path} says {word}: {sql}");
        }
        let own = path.ends_with("_postgres.sql");
        assert!(own || !upper.contains("COLLATE") && !upper.contains("AUTOVACUUM"), "{path} is for both");
        assert!(path.ends_with("_cockroach.sql") || !upper.contains("USING HASH"), "{path} is for both");
    }
}

#[test]
fn every_query_is_used() {
    let code: String = files("src", "rs").into_iter().map(|(_, text)| text).collect();
    for (path, _) in files("queries", "sql") {
        let name = Path::new(&path).file_name().unwrap().to_str().unwrap();
        assert!(code.contains(&format!("queries/{name}\"")), "nobody uses {name}");
    }
}

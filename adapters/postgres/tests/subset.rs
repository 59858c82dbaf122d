//! Statements keep to what both PostgreSQL and CockroachDB speak.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Words that only one of them knows, or that only one of them means; and types that are not as wide in both.
const FORBIDDEN: [&str; 28] = [
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
    "LOCK TABLE",
    "MERGE",
    "EXCLUDE",
    "DEFERRABLE",
    "INHERITS",
    "TABLESAMPLE",
    "BRIN",
    "GIST",
    "XML",
    "MONEY",
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
    let verbs = [
        "SELECT",
        "INSERT",
        "UPDATE",
        "DELETE",
        "CREATE",
        "BEGIN",
        "ALTER",
        "WITH",
        "DROP",
        "LOCK",
        "COPY",
        "SAVEPOINT",
        "TRUNCATE",
        "DECLARE",
    ];
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
        let own = path.ends_with("_postgres.sql");
        for word in FORBIDDEN.into_iter().filter(|word| !own || *word != "XMIN") {
            let hit = upper.match_indices(word).find(|(at, _)| is_word(&upper, *at, word.len()));
            assert!(hit.is_none(), "{path} says {word}: {sql}");
        }
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

/// Tables that a statement changes, with how often it names each as one to change.
fn changed(sql: &str) -> BTreeMap<String, usize> {
    let words: Vec<String> = sql.replace('(', " ( ").split_whitespace().map(str::to_ascii_lowercase).collect();
    let mut tables: BTreeMap<String, usize> = BTreeMap::new();
    for at in 1..words.len().saturating_sub(1) {
        let changes = match (words[at - 1].as_str(), words[at].as_str()) {
            ("insert", "into") | ("delete", "from") => true,
            ("do" | "for", "update") => false,
            (_, "update") => true,
            _ => false,
        };
        if changes {
            *tables.entry(words[at + 1].clone()).or_default() += 1;
        }
    }
    tables
}

/// Query files, and those that the code puts together into one statement.
fn whole_statements() -> Vec<(String, String)> {
    let uncommented =
        |text: &str| text.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    let queries: BTreeMap<String, String> = files("queries", "sql")
        .into_iter()
        .map(|(path, text)| (path.rsplit('/').next().unwrap_or_default().to_owned(), uncommented(&text)))
        .collect();
    let mut statements: Vec<(String, String)> = queries.clone().into_iter().collect();
    for (path, text) in files("src", "rs") {
        for group in text.split("concat!(").skip(1) {
            let group = group.split(';').next().unwrap_or_default();
            let names = group.split("queries/").skip(1).filter_map(|rest| rest.split('"').next());
            let parts: Vec<&str> = names.filter_map(|name| queries.get(name)).map(String::as_str).collect();
            statements.push((path.clone(), parts.join("\n")));
        }
    }
    statements
}

/// CockroachDB refuses a statement whose parts change the same table twice.
#[test]
fn no_statement_changes_a_table_twice() {
    let statements = whole_statements();
    assert!(statements.iter().filter(|(path, _)| path.ends_with(".rs")).count() > 10, "what is put together was not found");
    let counted = changed("WITH a AS (DELETE FROM x USING y) INSERT INTO x (z) SELECT 1 ON CONFLICT DO UPDATE SET z = 2");
    assert_eq!(counted, BTreeMap::from([("x".to_owned(), 2)]));
    for (path, sql) in statements {
        let twice: Vec<_> = changed(&sql).into_iter().filter(|(_, times)| *times > 1).collect();
        assert!(twice.is_empty(), "{path} changes {twice:?}");
    }
}

/// Every file is applied, none is left out of a dialect, and the numbers have no gaps.
#[test]
fn every_migration_is_for_both_dialects_or_has_a_variant_for_each() {
    let code = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema.rs")).unwrap();
    let mut kinds: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    let migrations = files("migrations", "sql");
    for (path, _) in &migrations {
        let name = path.rsplit('/').next().unwrap();
        assert_eq!(code.matches(&format!("migrations/{name}\"")).count(), 1, "{name} is not applied once");
        let kind = ["_postgres.sql", "_cockroach.sql"].into_iter().find(|end| name.ends_with(end)).unwrap_or("both");
        assert!(kinds.entry(name[..4].parse().unwrap()).or_default().insert(kind), "{name} has the number of another");
    }
    let last = u32::try_from(kinds.len()).unwrap();
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), (1..=last).collect::<Vec<_>>());
    assert!(code.contains(&format!("const KNOWN: i64 = {last};")), "the newest is {last}");
    for (number, kinds) in kinds {
        let whole = kinds.contains("both") && kinds.len() == 1 || !kinds.contains("both") && kinds.len() == 2;
        assert!(whole, "migration {number} is for {kinds:?} only");
    }
}

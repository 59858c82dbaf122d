//! Two versions on one database: processes of the last release go on while this one's migrations are already there.
//!
//! `released/statements.sql` has every statement that the last release sends, taken from the log of a server while its whole
//! conformance list ran. CONTRIBUTING.md says how it is made anew for a release.

mod stage;

use lockgate_postgres::{PostgresStore, UnusableDatabase, migrate};
use stage::{Stage, client};

#[tokio::test]
async fn every_statement_of_the_last_release_still_works() {
    let stage = Stage::new().await;
    let client = client(&stage.config).await;
    let statements: Vec<&str> = include_str!("released/statements.sql").split("\n;;\n").collect();
    assert!(statements.len() > 100, "{}", statements.len());
    for statement in statements {
        // The server looks up every table, column and type, and finds a way through its indexes.
        if let Err(error) = client.prepare(statement).await {
            panic!("a process of the last release would fail: {error:?}\n{statement}");
        }
    }
}

#[tokio::test]
async fn a_newer_database_is_worked_on_if_it_says_that_it_still_fits() {
    let stage = Stage::new().await;
    let client = client(&stage.config).await;
    let known: i64 = client.query_one("SELECT max(version) FROM migrations", &[]).await.unwrap().get(0);
    let add = "INSERT INTO migrations (version, checksum, needs) VALUES ($1, 'of the future', $2)";
    client.execute(add, &[&(known + 1), &known]).await.unwrap();
    migrate(&stage.options()).await.expect("nothing to do here");
    PostgresStore::connect(stage.options()).await.expect("it still fits");
    // The next one takes away what this version needs.
    client.execute(add, &[&(known + 2), &(known + 2)]).await.unwrap();
    let refused = PostgresStore::connect(stage.options()).await;
    assert!(matches!(refused, Err(UnusableDatabase::Newer { found, .. }) if found == known + 2));
    assert!(matches!(migrate(&stage.options()).await, Err(UnusableDatabase::Newer { .. })));
}

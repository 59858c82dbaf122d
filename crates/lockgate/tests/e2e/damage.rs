//! Pages of the database that were overwritten: the process says so, and takes no job whose result it could not store.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;

use tonic::Code;

use super::harness::{Server, job, submit, until};

/// Turns the bytes of the first page of a table's B-tree over; what undoes it.
fn damage(database: &Path, table: &str) -> impl FnOnce() + use<> {
    let reader = rusqlite::Connection::open(database).expect("opened");
    let sql = "SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema WHERE name = ?1";
    let (page, size): (u32, u32) = reader.query_row(sql, [table], |row| Ok((row.get(0)?, row.get(1)?))).expect("a table");
    drop(reader);
    let file = OpenOptions::new().read(true).write(true).open(database).expect("a file");
    let (at, mut bytes) = (u64::from(page - 1) * u64::from(size), vec![0; usize::try_from(size).expect("small")]);
    file.read_exact_at(&mut bytes, at).expect("read");
    let flipped: Vec<u8> = bytes.iter().map(|byte| !byte).collect();
    file.write_all_at(&flipped, at).expect("written");
    move || file.write_all_at(&bytes, at).expect("written")
}

async fn is_told_and_takes_no_jobs(table: &str) {
    let mut server = Server::start(&[]).await;
    let mut client = server.client().await;
    submit(&mut client, vec![job("before", "job.noop", "{}")]).await.expect("submitted");
    until(&mut client, "before", |job| job.ended_at_ms.is_some()).await;
    server.stop().await;
    let mend = damage(&server.folder().join("lockgate.db"), table);

    server.start_again().await;
    let noticed = server.wait_until_found(Some("store_damaged")).await;
    println!("{table} was found to be damaged after {noticed:?}");
    let refused = submit(&mut server.client().await, vec![job("after", "job.noop", "{}")]).await.expect_err("refused");
    assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
    assert!(refused.message().contains("docs/backup.md"), "{refused:?}");
    server.stop().await;

    mend();
    server.start_again().await;
    server.wait_until_found(None).await;
    let mut client = server.client().await;
    submit(&mut client, vec![job("mended", "job.noop", "{}")]).await.expect("submitted");
    until(&mut client, "mended", |job| job.ended_at_ms.is_some()).await;
}

#[tokio::test]
async fn damage_to_the_table_of_live_jobs_is_told_and_no_job_is_taken() {
    is_told_and_takes_no_jobs("jobs_hot").await;
}

/// A submit writes nothing there, so without a look at it jobs would be acknowledged whose results cannot be stored.
#[tokio::test]
async fn damage_to_the_table_of_ended_jobs_is_told_and_no_job_is_taken() {
    is_told_and_takes_no_jobs("jobs_done").await;
}

//! What a worker says of itself and its machine.

use lockgate_worker::Worker;

use crate::edge::{Edge, Manners, job};
use crate::running::Running;

#[tokio::test]
async fn a_hello_tells_where_the_worker_stands_and_what_it_takes() {
    let mut edge = Edge::start(Manners::default()).await;
    let worker = Worker::connect(edge.url()).region("eu-west").slots(3).prefetch(4).label("disk", "fast");
    let _running = Running::start(worker.handle("echo", |_, payload| async { Ok(payload) }));
    let hello = edge.accept().await.hello;
    assert_eq!((&*hello.region, hello.slots, hello.prefetch, &*hello.labels["disk"]), ("eu-west", 3, 4, "fast"));
}

#[tokio::test]
async fn beats_carry_the_load() {
    let mut edge = Edge::start(Manners::default()).await;
    let mut readings = 0;
    let worker = Worker::connect(edge.url()).slots(1).gpu_load(move || {
        readings += 1;
        Some(readings)
    });
    let _running = Running::start(worker.handle("hang", |_, _| std::future::pending::<Result<(), _>>()));
    let mut stream = edge.accept().await;
    stream.beat("an idle worker", |beat| beat.active_jobs == 0).await;
    stream.assign([job("runs", "hang", ""), job("waits", "hang", "")]);
    let beat = stream.beat("a busy worker", |beat| beat.active_jobs == 1).await;
    assert_eq!(beat.inventory.len(), 2, "what waits is held, and no slot is in use for it");
    let first = stream.beat("a GPU's load", |beat| beat.gpu_utilization.is_some()).await;
    stream.beat("a GPU read anew", |beat| beat.gpu_utilization > first.gpu_utilization).await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn on_linux_beats_tell_how_busy_processors_and_memory_are() {
    let mut edge = Edge::start(Manners::default()).await;
    let _running = Running::start(Worker::connect(edge.url()).handle("echo", |_, payload| async { Ok(payload) }));
    let mut stream = edge.accept().await;
    let beat = stream.beat("both loads", |beat| beat.cpu_load.is_some() && beat.memory_load.is_some()).await;
    assert!(beat.cpu_load <= Some(100) && beat.memory_load <= Some(100), "{beat:?}");
    assert_eq!(beat.gpu_utilization, None, "nobody told how to read it");
}

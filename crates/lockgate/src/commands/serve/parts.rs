//! The parts of a server: tasks that can be stopped.

use std::sync::Arc;

use lockgate_engine::Engine;
use lockgate_gateway::Gateway;
use lockgate_otlp::Exporter;
use lockgate_worker::{Worker, WorkerError};
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::bus_submits::BusServices;
use super::files::ConfigFile;
use crate::clock::KeptClock;

/// A task and the channel that stops it.
pub(super) struct StoppableTask {
    name: &'static str,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl StoppableTask {
    pub(super) fn start<F: Future<Output = ()> + Send + 'static>(
        name: &'static str,
        run: impl FnOnce(watch::Receiver<bool>) -> F,
    ) -> Self {
        let (stop, stopping) = watch::channel(false);
        Self { name, stop, task: tokio::spawn(run(stopping)) }
    }

    pub(super) async fn stop(self) {
        self.stop.send_replace(true);
        if let Err(error) = self.task.await {
            tracing::error!(%error, part = self.name, "server component failed");
        }
    }

    /// Waits until the part ends, and says how. It must not be stopped afterwards.
    pub(super) async fn ended(&mut self) -> String {
        match (&mut self.task).await {
            Ok(()) => format!("{} ended by itself", self.name),
            Err(error) => format!("{} ended badly: {error}", self.name),
        }
    }
}

pub(super) fn followed(file: ConfigFile, engine: &Engine) -> StoppableTask {
    let engine = engine.clone();
    StoppableTask::start(file.kind.name, |stopping| file.watch(engine, stopping))
}

pub(super) fn api_part(name: &'static str, gateway: Gateway, listener: TcpListener) -> StoppableTask {
    StoppableTask::start(name, |stopping| async move {
        if let Err(error) = gateway.serve(listener, stopped(stopping)).await {
            tracing::error!(%error, "the API could not be served");
        }
    })
}

pub(super) fn engine_part(engine: Engine) -> StoppableTask {
    StoppableTask::start("the engine", |stopping| async move { engine.run(stopping).await })
}

pub(super) fn metrics_part(gateway: Gateway, listener: TcpListener, registry: Registry) -> StoppableTask {
    StoppableTask::start("the metrics server", |stopping| async move {
        gateway.serve_metrics(listener, Arc::new(registry), stopped(stopping)).await;
    })
}

pub(super) fn spans_part(exporter: Arc<Exporter>) -> StoppableTask {
    StoppableTask::start("the sender of spans", |stopping| async move { exporter.run(stopping).await })
}

pub(super) fn clock_part(kept: KeptClock) -> StoppableTask {
    StoppableTask::start("the keeper of the clock", |stopping| kept.keep(stopping))
}

/// Ends when one of its subjects does: a process that does not receive there must not look healthy.
pub(super) fn letters_part(mut office: BusServices) -> StoppableTask {
    StoppableTask::start("the door for letters", |stopping| async move {
        tokio::select! {
            () = stopped(stopping) => office.close().await,
            how = office.ended() => tracing::error!(how, "NATS ingress stopped"),
        }
    })
}

/// The server continues without its worker if the worker left because an operator drained it or its pool was removed.
pub(super) fn built_in(worker: Worker) -> StoppableTask {
    StoppableTask::start("the built-in worker", |stopping| async move {
        match worker.run_until(stopped(stopping.clone())).await {
            Ok(()) if *stopping.borrow() => {}
            Ok(()) => {
                tracing::warn!("an operator drained the built-in worker; the server goes on without it");
                stopped(stopping).await;
            }
            // Its pool was removed from the pools in force, and the worker had to attach again.
            Err(error @ WorkerError::Refused(_)) => {
                tracing::error!(%error, "the built-in worker was refused; the server goes on without it");
                stopped(stopping).await;
            }
            Err(error) => tracing::error!(%error, "the built-in worker ended"),
        }
    })
}

/// A missing part never ends.
pub(super) async fn ended(part: Option<&mut StoppableTask>) -> String {
    match part {
        Some(part) => part.ended().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn stopped(mut stopping: watch::Receiver<bool>) {
    // A dropped sender also means stop.
    let _ = stopping.wait_for(|stop| *stop).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_part_that_ends_by_itself_says_which_it_is_and_how() {
        let mut quiet = StoppableTask::start("the door", |_| async {});
        assert_eq!(quiet.ended().await, "the door ended by itself");
        let mut loud = StoppableTask::start("the loop", |_| async { panic!("a bug") });
        let how = loud.ended().await;
        assert!(how.starts_with("the loop ended badly") && how.contains("panic"), "{how}");
    }

    #[tokio::test]
    async fn a_part_that_is_stopped_has_seen_the_switch() {
        let (seen, was_seen) = tokio::sync::oneshot::channel();
        let part = StoppableTask::start("the door", |stopping| async move {
            stopped(stopping).await;
            let _ = seen.send(());
        });
        part.stop().await;
        assert_eq!(was_seen.await, Ok(()));
    }
}

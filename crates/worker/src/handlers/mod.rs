//! The built-in handlers, so that the first job needs no code.

mod always_fail;
mod db_tx;
mod descriptors;
mod echo;
mod exec;
mod exec_process;
mod fan_out;
mod faults;
mod flaky;
mod guard;
mod http_call;
mod http_client;
mod noop;
mod sleep;

use std::future::Future;
use std::sync::Arc;

pub use self::db_tx::{EffectError, Effects};
use self::faults::HandlerRegistrar;
pub use self::faults::{Chance, Faults, Slow};
use crate::breaker::Breakers;
use crate::context::Context;
use crate::error::{JobError, chain};
use crate::worker::Worker;

/// The built-in handlers and what they may do.
#[derive(Clone, Default)]
pub struct Builtin {
    /// Registers `job.exec`, which runs any command as the worker's user.
    pub allow_exec: bool,
    /// Lets `job.http_call` reach private, loopback and link-local addresses.
    pub allow_private_addresses: bool,
    /// The breakers of the hosts that `job.http_call` calls: share them with your handlers, or read them for metrics.
    pub breakers: Breakers,
    /// Where `job.db_tx` writes. If absent, the topic is not served.
    pub effects: Option<Arc<dyn Effects>>,
    /// Faults to inject into every built-in handler. None by default.
    pub faults: Option<Faults>,
}

impl Builtin {
    /// Adds the handlers to a worker.
    pub fn register(self, worker: Worker) -> Worker {
        let post = HandlerRegistrar::new(worker, self.faults)
            .handle("job.noop", |_, _| noop::run())
            .handle("job.echo", |_, payload| echo::run(payload))
            .handle("job.sleep", |context, payload| async move {
                unless_cancelled(&context, sleep::run(&context, &payload)).await
            })
            .handle("job.flaky", |context, payload| flaky::run(context.attempt(), payload))
            .handle("job.always_fail", |_, payload| always_fail::run(payload))
            .handle("job.fan_out", |context, payload| async move {
                unless_cancelled(&context, fan_out::run(&context, &payload)).await
            });
        let post = with_http_call(post, self.allow_private_addresses, self.breakers);
        let post = if self.allow_exec { with_exec(post) } else { post };
        let post = match self.effects {
            Some(effects) => post.handle("job.db_tx", move |context, payload| db_tx::run(effects.clone(), context, payload)),
            None => post,
        };
        post.into_worker()
    }
}

fn with_exec(post: HandlerRegistrar) -> HandlerRegistrar {
    post.handle("job.exec", |context, payload| async move {
        refuse_unless(context.may_exec(), "start programs (constraint exec)")?;
        unless_cancelled(&context, exec::run(&context, &payload)).await
    })
}

/// Fails the job for good if its verdict's constraints forbid what it needs, because no retry changes that.
fn refuse_unless(allowed: bool, what: &str) -> Result<(), JobError> {
    if allowed { Ok(()) } else { Err(JobError::fatal(format!("policy does not let this job {what}"))) }
}

/// Drops cancel-safe work as soon as its attempt no longer counts, which frees the slot a second earlier.
async fn unless_cancelled<T>(context: &Context, work: impl Future<Output = Result<T, JobError>>) -> Result<T, JobError> {
    tokio::select! {
        biased;
        done = work => done,
        () = context.cancelled() => Err(JobError::cancelled("the attempt no longer counts")),
    }
}

fn with_http_call(post: HandlerRegistrar, allow_private_addresses: bool, breakers: Breakers) -> HandlerRegistrar {
    match http_call::HttpCaller::new(allow_private_addresses, breakers) {
        Ok(caller) => {
            let caller = Arc::new(caller);
            post.handle("job.http_call", move |context, payload| {
                let caller = caller.clone();
                async move {
                    refuse_unless(context.may_use_network(), "open connections (constraint network)")?;
                    let trace = context.traceparent();
                    unless_cancelled(&context, http_call::run(&caller, &payload, trace.as_deref())).await
                }
            })
        }
        Err(error) => post.mistake(format!("job.http_call: {}", chain(&error))),
    }
}

//! What the Rust libraries log goes to Python's `logging`, as the logger `lockgate.core`.

use std::fmt::{self, Write};
use std::sync::OnceLock;

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::callbacks::CallbackThread;

static CALLBACKS: OnceLock<CallbackThread> = OnceLock::new();

/// Takes effect once in a process.
pub(crate) fn send_to(callbacks: CallbackThread) {
    if CALLBACKS.set(callbacks).is_ok() {
        // This library has a `tracing` of its own, so that no other subscriber can be in place.
        let _ = tracing::subscriber::set_global_default(PythonLog);
    }
}

struct PythonLog;

impl Subscriber for PythonLog {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO && metadata.target().starts_with("lockgate")
    }

    fn event(&self, event: &Event<'_>) {
        let Some(callbacks) = CALLBACKS.get() else { return };
        let level = python_level(*event.metadata().level());
        let mut text = LineText::default();
        event.record(&mut text);
        callbacks.post(move |py| {
            let logger = py.import("logging")?.call_method1("getLogger", ("lockgate.core",))?;
            logger.call_method1("log", (level, "%s", text.finished())).map(drop)
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

const fn python_level(level: Level) -> u8 {
    match level {
        Level::ERROR => 40,
        Level::WARN => 30,
        Level::INFO => 20,
        _ => 10,
    }
}

/// The message, then the fields.
#[derive(Default)]
struct LineText {
    message: String,
    fields: String,
}

impl LineText {
    fn finished(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for LineText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a text cannot fail.
        let _ = if field.name() == "message" {
            write!(self.message, "{value:?}")
        } else {
            write!(self.fields, " {}={value:?}", field.name())
        };
    }
}

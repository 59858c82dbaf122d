//! A status line that is rewritten while a command runs; only on a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

const SPIN_EVERY: Duration = Duration::from_millis(100);

pub(crate) struct LiveBar {
    bar: ProgressBar,
}

impl LiveBar {
    pub(crate) fn new(out: Output, message: String) -> Self {
        let bar = if out.is_live() { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.set_style(ProgressStyle::default_spinner());
        bar.set_message(message);
        bar.enable_steady_tick(SPIN_EVERY);
        Self { bar }
    }

    pub(crate) fn say(&self, message: String) {
        self.bar.set_message(message);
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

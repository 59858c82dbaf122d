//! A terminal's other screen: what stood there before is there again afterwards, however one leaves.

use std::io::{Stdout, Write};

use rustix::termios::tcgetwinsize;

use crate::error::CliError;

/// Without a cursor, and with long lines cut off at the edge.
const OPEN: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const CLOSE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";
const HOME: &str = "\u{1b}[H";
/// To the end of the line, and of the screen: what a longer picture left there goes.
const CLEAR_LINE: &str = "\u{1b}[K";
const CLEAR_REST: &str = "\u{1b}[J";
/// When the terminal does not say.
const ROWS: usize = 24;

pub(super) struct Screen {
    stdout: Stdout,
}

impl Screen {
    pub(super) fn open() -> Result<Self, CliError> {
        let mut stdout = std::io::stdout();
        write!(stdout, "{OPEN}")?;
        stdout.flush()?;
        Ok(Self { stdout })
    }

    /// Overwrites what is shown, so that nothing flickers. What does not fit is left out from the end.
    pub(super) fn show(&mut self, text: &str) -> Result<(), CliError> {
        let mut frame = HOME.to_owned();
        for (n, line) in text.lines().take(self.rows()).enumerate() {
            if n > 0 {
                frame.push_str("\r\n");
            }
            frame.push_str(line);
            frame.push_str(CLEAR_LINE);
        }
        frame.push_str(CLEAR_REST);
        self.stdout.write_all(frame.as_bytes())?;
        Ok(self.stdout.flush()?)
    }

    fn rows(&self) -> usize {
        tcgetwinsize(&self.stdout).ok().map(|size| usize::from(size.ws_row)).filter(|rows| *rows > 0).unwrap_or(ROWS)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nothing can be done about a terminal that is gone.
        let _ = write!(self.stdout, "{CLOSE}");
        let _ = self.stdout.flush();
    }
}

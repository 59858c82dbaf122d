//! Formats answers: aligned columns and few colours for people, JSON for programs.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, presets};
use jiff::Timestamp;
use lockgate_api::view::Time;
use serde::Serialize;

use crate::error::CliError;

/// The longest error text in a table cell; `get` shows all of it.
const CELL_CHARS_MAX: usize = 60;

/// The reader of the answers: a person or a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    People { colour: bool },
    Programs,
}

/// The format of answers, and the time that relative times refer to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) format: Format,
    now: Timestamp,
}

/// Colours by meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
    Busy,
    Waiting,
    Faint,
}

impl Tone {
    pub(crate) fn of_state(state: &str) -> Self {
        match state {
            "SUCCEEDED" => Self::Good,
            "RUNNING" | "DISPATCHED" => Self::Busy,
            "PENDING" | "APPROVAL_REQUIRED" | "SCHEDULED" => Self::Waiting,
            "CANCELLED" => Self::Faint,
            _ => Self::Bad,
        }
    }

    const fn ansi(self) -> &'static str {
        match self {
            Self::Plain => "0",
            Self::Good => "32",
            Self::Bad => "31",
            Self::Busy => "36",
            Self::Waiting => "33",
            Self::Faint => "2",
        }
    }

    const fn cell_colour(self) -> Option<Color> {
        match self {
            Self::Plain | Self::Faint => None,
            Self::Good => Some(Color::DarkGreen),
            Self::Bad => Some(Color::DarkRed),
            Self::Busy => Some(Color::DarkCyan),
            Self::Waiting => Some(Color::DarkYellow),
        }
    }
}

/// One cell of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableCell {
    text: String,
    tone: Tone,
    right: bool,
}

impl TableCell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), tone: Tone::Plain, right: false }
    }

    pub(crate) fn number(number: &impl ToString) -> Self {
        Self { text: number.to_string(), tone: Tone::Plain, right: true }
    }

    pub(crate) fn state(state: &str) -> Self {
        Self { text: state.to_owned(), tone: Tone::of_state(state), right: false }
    }

    /// The first line of a long text, cut to what fits beside other columns.
    pub(crate) fn clipped(text: &str) -> Self {
        let line = text.lines().next().unwrap_or_default();
        let short: String = line.chars().take(CELL_CHARS_MAX).collect();
        Self::text(if short.len() < text.len() { format!("{short}…") } else { short })
    }

    pub(crate) fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    fn cell(&self) -> Cell {
        let cell = Cell::new(&self.text);
        let cell = if self.right { cell.set_alignment(CellAlignment::Right) } else { cell };
        let cell = if self.tone == Tone::Faint { cell.add_attribute(Attribute::Dim) } else { cell };
        match self.tone.cell_colour() {
            Some(colour) => cell.fg(colour),
            None => cell,
        }
    }
}

impl Output {
    pub(crate) const fn new(format: Format, now: Timestamp) -> Self {
        Self { format, now }
    }

    pub(crate) const fn is_json(&self) -> bool {
        matches!(self.format, Format::Programs)
    }

    /// Whether a person watches the error stream, so that live progress makes sense.
    pub(crate) fn is_live(&self) -> bool {
        !self.is_json() && std::io::stderr().is_terminal()
    }

    const fn colour(&self) -> bool {
        matches!(self.format, Format::People { colour: true })
    }

    pub(crate) fn line(&self, text: &str) -> Result<(), CliError> {
        let mut stdout = std::io::stdout().lock();
        writeln!(stdout, "{text}")?;
        Ok(stdout.flush()?)
    }

    /// A remark on the answer, such as how to get the next page. Only for people, and never in a pipe.
    pub(crate) fn remark(&self, text: &str) {
        if !self.is_json() {
            eprintln!("{}", self.paint(text, Tone::Faint));
        }
    }

    pub(crate) fn json<T: Serialize>(&self, value: &T) -> Result<(), CliError> {
        self.line(&serde_json::to_string_pretty(value).map_err(|error| CliError::Server(error.to_string()))?)
    }

    /// One JSON document a line, for streams.
    pub(crate) fn json_line<T: Serialize>(&self, value: &T) -> Result<(), CliError> {
        self.line(&serde_json::to_string(value).map_err(|error| CliError::Server(error.to_string()))?)
    }

    pub(crate) fn paint(&self, text: &str, tone: Tone) -> String {
        if self.colour() && tone != Tone::Plain {
            format!("\u{1b}[{}m{text}\u{1b}[0m", tone.ansi())
        } else {
            text.to_owned()
        }
    }

    pub(crate) fn state(&self, state: &str) -> String {
        self.paint(state, Tone::of_state(state))
    }

    /// Aligned columns under a faint heading.
    pub(crate) fn table(&self, headings: &[&str], rows: &[Vec<TableCell>]) -> String {
        let mut table = self.blank_table();
        let right = |column: usize| rows.first().and_then(|row| row.get(column)).is_some_and(|field| field.right);
        table.set_header(headings.iter().enumerate().map(|(column, heading)| {
            let cell = Cell::new(heading.to_uppercase()).add_attribute(Attribute::Dim);
            if right(column) { cell.set_alignment(CellAlignment::Right) } else { cell }
        }));
        for row in rows {
            table.add_row(row.iter().map(TableCell::cell));
        }
        without_gap(&mut table)
    }

    /// Names on the left, values on the right.
    pub(crate) fn fields(&self, fields: &[(&str, TableCell)]) -> String {
        let mut table = self.blank_table();
        for (name, value) in fields {
            table.add_row([Cell::new(name).add_attribute(Attribute::Dim), value.cell()]);
        }
        without_gap(&mut table)
    }

    fn blank_table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.colour() {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        table
    }

    /// The time `span` before now, in Unix milliseconds.
    pub(crate) fn earlier(&self, span: Duration) -> i64 {
        self.now.as_millisecond().saturating_sub(i64::try_from(span.as_millis()).unwrap_or(i64::MAX))
    }

    /// `3s ago`, `in 5m`, `now`.
    pub(crate) fn relative(&self, at: Time) -> String {
        let ms = self.now.as_millisecond() - at.0.as_millisecond();
        let span = span(Duration::from_millis(ms.unsigned_abs()));
        match ms {
            -999..=999 => "now".to_owned(),
            1_000.. => format!("{span} ago"),
            _ => format!("in {span}"),
        }
    }

    pub(crate) fn relative_or_dash(&self, at: Option<Time>) -> TableCell {
        at.map_or_else(|| TableCell::text("-").toned(Tone::Faint), |at| TableCell::text(self.relative(at)))
    }

    /// `2026-01-31 08:00:00 UTC (3s ago)`.
    pub(crate) fn moment(&self, at: Time) -> String {
        format!("{} ({})", at.0.strftime("%Y-%m-%d %H:%M:%S UTC"), self.relative(at))
    }
}

/// Columns stand two spaces apart, the first one at the margin.
fn without_gap(table: &mut Table) -> String {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt()
}

/// The time of day, for lines that follow each other.
pub(crate) fn clock_time(at: Time) -> String {
    at.0.strftime("%H:%M:%S%.3f").to_string()
}

/// The largest unit that fits, and the next smaller one where it still matters.
pub(crate) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0 => format!("{}ms", span.as_millis()),
        1..60 => format!("{seconds}s"),
        60..600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        600..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h{:02}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// A number of bytes with a unit.
pub(crate) fn bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let mut size = bytes as f64;
    let mut unit = "B";
    for larger in UNITS {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "B" || size >= 10.0 { format!("{size:.0} {unit}") } else { format!("{size:.1} {unit}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(colour: bool) -> Output {
        Output::new(Format::People { colour }, Timestamp::from_second(1_000_000).expect("in range"))
    }

    fn ago(seconds: i64) -> String {
        output(false).relative(Time(Timestamp::from_second(1_000_000 - seconds).expect("in range")))
    }

    #[test]
    fn times_are_relative_to_now() {
        assert_eq!(ago(0), "now");
        assert_eq!(ago(3), "3s ago");
        assert_eq!(ago(-300), "in 5m00s");
        assert_eq!(ago(7_260), "2h01m ago");
        assert_eq!(ago(200_000), "2d ago");
    }

    #[test]
    fn columns_are_aligned_and_numbers_stand_right() {
        let rows = vec![
            vec![TableCell::text("a"), TableCell::number(&5), TableCell::state("FAILED")],
            vec![TableCell::text("long"), TableCell::number(&100), TableCell::state("SUCCEEDED")],
        ];
        let table = output(false).table(&["id", "count", "state"], &rows);
        assert_eq!(table, "ID    COUNT  STATE\na         5  FAILED\nlong    100  SUCCEEDED");
    }

    #[test]
    fn colours_appear_only_where_they_are_wanted() {
        assert_eq!(output(false).state("FAILED"), "FAILED");
        assert_eq!(output(true).state("FAILED"), "\u{1b}[31mFAILED\u{1b}[0m");
        let rows = vec![vec![TableCell::state("SUCCEEDED")]];
        assert!(!output(false).table(&["state"], &rows).contains('\u{1b}'));
        assert!(output(true).table(&["state"], &rows).contains('\u{1b}'));
    }

    #[test]
    fn long_and_many_lined_texts_are_clipped_in_tables() {
        assert_eq!(TableCell::clipped("short").text, "short");
        assert_eq!(TableCell::clipped("first\nsecond").text, "first…");
        assert_eq!(TableCell::clipped(&"x".repeat(99)).text.chars().count(), CELL_CHARS_MAX + 1);
    }
}

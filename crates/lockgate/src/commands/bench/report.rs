//! Collects figures and shows them, as they come and at the end.

use std::path::Path;

use serde::Serialize;

use crate::error::CliError;
use crate::output::{Output, TableCell};

#[derive(Clone, Debug, Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

pub(super) struct BenchReport {
    out: Output,
    figures: Vec<Figure>,
}

impl BenchReport {
    pub(super) fn new(out: Output) -> Self {
        Self { out, figures: Vec::new() }
    }

    /// A word on what happens now, for people.
    pub(super) fn note(&self, text: &str) {
        self.out.remark(text);
    }

    pub(super) fn add(&mut self, name: impl Into<String>, value: f64, unit: &'static str) {
        let figure = Figure { name: name.into(), value: rounded(value), unit };
        self.out.remark(&format!("  {:<44} {:>14} {unit}", figure.name, shown(figure.value)));
        self.figures.push(figure);
    }

    pub(super) fn write(&self, file: &Path) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(&self.figures).map_err(|error| CliError::Server(error.to_string()))?;
        Ok(std::fs::write(file, text)?)
    }

    pub(super) fn finish(self) -> Result<(), CliError> {
        if self.out.is_json() {
            return self.out.json(&self.figures);
        }
        let row = |f: &Figure| vec![TableCell::text(&f.name), TableCell::number(&shown(f.value)), TableCell::text(f.unit)];
        let rows: Vec<_> = self.figures.iter().map(row).collect();
        self.out.line(&self.out.table(&["FIGURE", "VALUE", "UNIT"], &rows))
    }
}

/// Three digits are as many as a shared machine can tell apart.
fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(2.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn shown(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value}") }
}

/// The middle of the runs.
pub(super) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// The value below which `share` of the samples lie.
pub(super) fn percentile(sorted: &[f64], share: f64) -> f64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "an index")]
    let at = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
    sorted.get(at).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_three_digits() {
        assert!((rounded(123_456.0) - 123_000.0).abs() < 1e-6);
        assert!((rounded(0.001_234_5) - 0.001_23).abs() < 1e-9);
        assert!(rounded(0.0).abs() < f64::EPSILON);
    }

    #[test]
    fn the_99th_of_100_samples_is_the_99th() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        assert!((percentile(&samples, 0.99) - 99.0).abs() < f64::EPSILON);
        assert!((percentile(&samples, 0.5) - 50.0).abs() < f64::EPSILON);
        assert!((median(vec![3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
    }
}

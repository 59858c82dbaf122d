//! Labels of a job that only the platform sets.

use super::{Life, OutputStage};

/// The job ran without a verdict.
const BYPASSED: &str = "safety_bypassed";
/// Why it ran without a verdict.
const BYPASS_REASON: &str = "safety_bypass_reason";
/// The result was exposed without a scan.
const OUTPUT_BYPASSED: &str = "safety_bypassed_output";

impl Life {
    /// The labels that the platform adds to the client's own. Clients cannot set these names.
    pub fn platform_labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let bypassed = self.bypass.as_ref().map(|bypass| [(BYPASSED, "true"), (BYPASS_REASON, &*bypass.reason)]);
        let unscanned = self.output.as_ref().filter(|check| check.stage == OutputStage::Unchecked);
        bypassed.into_iter().flatten().chain(unscanned.map(|_| (OUTPUT_BYPASSED, "true")))
    }

    pub fn has_platform_label(&self, name: &str, value: &str) -> bool {
        self.platform_labels().any(|label| label == (name, value))
    }
}

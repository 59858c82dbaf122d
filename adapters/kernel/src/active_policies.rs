//! The remote kernel's policy, as far as it is known here.
//!
//! Verdicts on jobs are always requested from the kernel. The output rules are evaluated here, because every report needs
//! their verdict on metadata and texts at once.

use std::sync::Arc;

use lockgate_core::policy::{InputPolicy, OutputRules, Policy};
use lockgate_core::verdict::BUILTIN_ALLOW;
use lockgate_ports::Elsewhere;

/// No verdict has this snapshot, so nothing is dispatched until the active policy is known.
const UNKNOWN: &str = "remote:unknown";

pub(crate) struct ActivePolicies {
    pub(crate) policy: Elsewhere,
    pub(crate) input: InputPolicy,
    pub(crate) rules: OutputRules,
}

impl Default for ActivePolicies {
    fn default() -> Self {
        let policy = Elsewhere { id: UNKNOWN.into(), text: "".into() };
        Self { policy, input: InputPolicy::CLOSED, rules: OutputRules::Unknown }
    }
}

/// The text belongs to another policy than the one that it was sent for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mixed;

impl ActivePolicies {
    /// The snapshot whose rules are known; empty if none are.
    pub(crate) fn known(&self) -> &str {
        if matches!(self.rules, OutputRules::Of(_)) { &self.policy.id } else { "" }
    }
}

/// The output rules of a text. The errors say why a text cannot be loaded here; its rules then stay unknown.
pub(crate) fn rules(policy: &Elsewhere) -> Result<(OutputRules, Vec<String>), Mixed> {
    if &*policy.id == BUILTIN_ALLOW {
        return Ok((OutputRules::None, Vec::new()));
    }
    if policy.text.is_empty() {
        return Ok((OutputRules::Unknown, vec!["its text was not sent: update the safety kernel".to_owned()]));
    }
    match Policy::load_stored("policy.yaml", &policy.text) {
        Ok(read) if *read.snapshot() == policy.id => Ok((OutputRules::Of(Arc::new(read)), Vec::new())),
        Ok(_) => Err(Mixed),
        Err(errors) => Ok((OutputRules::Unknown, errors.iter().map(ToString::to_string).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_counts_only_under_its_own_name() {
        let text = "version: 1\n";
        let id = Policy::load("policy.yaml", text).expect("read").snapshot().clone();
        let of = |id: &str, text: &str| rules(&Elsewhere { id: id.into(), text: text.into() });
        assert!(matches!(of(&id, text), Ok((OutputRules::Of(_), _))));
        assert!(matches!(of("sha256:other", text), Err(Mixed)));
        assert!(matches!(of(BUILTIN_ALLOW, ""), Ok((OutputRules::None, _))));
    }

    #[test]
    fn what_is_missing_or_cannot_be_read_leaves_the_rules_unknown() {
        for text in ["", "version: 99\n"] {
            let (rules, errors) = rules(&Elsewhere { id: "sha256:1".into(), text: text.into() }).expect("looked at");
            assert!(matches!(rules, OutputRules::Unknown) && !errors.is_empty(), "{text:?}");
        }
    }
}

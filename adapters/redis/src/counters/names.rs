//! The keys of the counters on the server. They are documented for operators.

use lockgate_core::rate::Rate;

use crate::error::ConnectError;
use crate::options::check_installation;

/// The installation whose keys have no prefix.
const DEFAULT: &str = "default";
const WORKERS: &str = "sys:workers:snapshot";

pub(crate) struct KeyNames {
    prefix: String,
    /// The key of the workers' snapshot, which is prefixed in another way than the other keys.
    workers: String,
}

impl KeyNames {
    pub(crate) fn of(installation: &str) -> Result<Self, ConnectError> {
        check_installation(installation)?;
        let prefix = if installation == DEFAULT { "lockgate".to_owned() } else { format!("{installation}:lockgate") };
        let workers = if installation == DEFAULT { WORKERS.to_owned() } else { format!("{installation}:{WORKERS}") };
        Ok(Self { prefix, workers })
    }

    /// Failures, state and probes. A key is placed by what is in its braces, or as a whole without braces; these three share
    /// a slot.
    pub(super) fn breaker(&self, name: &str) -> [String; 3] {
        let failures = format!("{}:cb:{name}:failures", self.prefix);
        let (state, probes) = (format!("{{{failures}}}:state"), format!("{{{failures}}}:probes"));
        [failures, state, probes]
    }

    /// The marks "processed" and "in hand" of a message. They share a slot, as above.
    pub(crate) fn message(&self, id: &str) -> [String; 2] {
        let done = format!("{}:bus:processed:{id}", self.prefix);
        let in_hand = format!("{{{done}}}:in-flight");
        [done, in_hand]
    }

    /// A list with as many entries as jobs wait in the pool.
    pub(super) fn queue(&self, pool: &str) -> String {
        format!("{}:queue:{pool}", self.prefix)
    }

    pub(super) fn lock(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    pub(super) fn workers(&self) -> &str {
        &self.workers
    }

    pub(super) fn total(&self, name: &str) -> String {
        format!("{}:{name}", self.prefix)
    }

    /// All windows share a slot, so that one script can read many. The length of the rule's name makes the key unambiguous.
    pub(super) fn window(&self, rule: &str, key: &str) -> String {
        format!("{{{}:velocity}}:{}:{rule}:{key}", self.prefix, rule.len())
    }

    /// All buckets share a slot. A changed rate starts a new bucket.
    pub(super) fn bucket(&self, name: &str, rate: Rate) -> String {
        format!("{{{}:rate}}:{}:{}:{name}", self.prefix, rate.max, rate.window.as_millis())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_installation_has_the_names_operators_know() {
        let names = KeyNames::of("default").expect("a name");
        assert_eq!(names.breaker("safety")[0], "lockgate:cb:safety:failures");
        assert_eq!(names.breaker("safety:output")[1], "{lockgate:cb:safety:output:failures}:state");
        assert_eq!(names.message("m-1")[0], "lockgate:bus:processed:m-1");
        assert_eq!(names.queue("cpu"), "lockgate:queue:cpu");
        assert_eq!(names.lock("scheduler:snapshot:writer"), "lockgate:scheduler:snapshot:writer");
        assert_eq!(names.workers(), "sys:workers:snapshot");
        assert_eq!(names.total("scheduler:input_fail_open_total"), "lockgate:scheduler:input_fail_open_total");
    }

    #[test]
    fn other_installations_have_their_own() {
        let names = KeyNames::of("staging").expect("a name");
        assert_eq!(names.breaker("safety")[0], "staging:lockgate:cb:safety:failures");
        assert_eq!(names.lock("scheduler:snapshot:writer"), "staging:lockgate:scheduler:snapshot:writer");
        assert_eq!(names.workers(), "staging:sys:workers:snapshot");
        assert_eq!(names.window("r:1", "[]"), "{staging:lockgate:velocity}:3:r:1:[]");
        for wrong in ["", "a{b", "a b", &"x".repeat(65)] {
            assert!(matches!(KeyNames::of(wrong), Err(ConnectError::Installation(_))), "{wrong:?}");
        }
    }
}

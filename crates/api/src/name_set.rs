//! Names of closed sets, with their schemas: what the API document says about them is what is written.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use lockgate_core::access::Role;
use lockgate_core::audit::AuditAction;
use lockgate_core::breaker::BreakerState;
use lockgate_core::dag::{NodeState, RunState, UndoState};
use lockgate_core::job::{EventKind, JobState, OnTimeout, OutputStage, Phase, Reason};
use lockgate_core::lane::Priority;
use lockgate_core::output::OutputDecision;
use lockgate_core::policy::RuleScope;
use lockgate_core::pools::DispatchMode;
use lockgate_core::scan::FindingKind;
use lockgate_core::schedule::{Misfire, Overlap, SlotOutcome};
use lockgate_core::verdict::{Access, Decision};
use lockgate_core::why_reason::WhyReason;
use lockgate_proto::v1;
use serde::{Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::output::output_stage_name;
use crate::verdict::scope_name;

/// A set of names that grows only with the version of the API.
pub trait NameSet: 'static {
    /// What the API document calls the set.
    const TITLE: &'static str;

    /// Every member.
    fn names() -> impl Iterator<Item = &'static str>;
}

/// A member of such a set as it travels: a client also shows a name that only a newer server knows.
pub struct Name<S> {
    text: Cow<'static, str>,
    set: PhantomData<fn() -> S>,
}

/// What stands for a number that has no name here.
const UNKNOWN: &str = "UNKNOWN";

impl<S> Name<S> {
    fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), set: PhantomData }
    }
}

impl<S: NameSet> Name<S> {
    /// Every name of the set.
    pub fn all() -> impl Iterator<Item = &'static str> {
        S::names()
    }

    /// Of a value of a protobuf enumeration, whose names begin with that of the enumeration.
    fn of_value(name: &'static str, prefix: &str) -> Self {
        let name = name.strip_prefix(prefix).unwrap_or(name);
        Self::new(S::names().find(|known| known.eq_ignore_ascii_case(name)).unwrap_or(UNKNOWN))
    }
}

impl<S: NameSet> From<String> for Name<S> {
    fn from(name: String) -> Self {
        Self::new(S::names().find(|known| *known == name).map_or(Cow::Owned(name), Cow::Borrowed))
    }
}

impl<S> From<&Name<S>> for String {
    fn from(name: &Name<S>) -> Self {
        name.text.clone().into_owned()
    }
}

impl<S> Clone for Name<S> {
    fn clone(&self) -> Self {
        Self::new(self.text.clone())
    }
}

impl<S> Deref for Name<S> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl<S> PartialEq<str> for Name<S> {
    fn eq(&self, name: &str) -> bool {
        &*self.text == name
    }
}

impl<S> PartialEq<&str> for Name<S> {
    fn eq(&self, name: &&str) -> bool {
        &*self.text == *name
    }
}

impl<S> fmt::Display for Name<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl<S> fmt::Debug for Name<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl<S> Serialize for Name<S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.serialize_str(self)
    }
}

impl<S: NameSet> PartialSchema for Name<S> {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(S::names())).into()
    }
}

impl<S: NameSet> ToSchema for Name<S> {
    fn name() -> Cow<'static, str> {
        S::TITLE.into()
    }
}

/// Of types that list and name their members themselves. A field is of the alias: the derived schema of a struct takes the
/// argument of a generic type for a schema too.
macro_rules! listed {
    ($($alias:ident = $set:ident),+ $(,)?) => {$(
        pub type $alias = Name<$set>;

        impl NameSet for $set {
            const TITLE: &'static str = stringify!($set);

            fn names() -> impl Iterator<Item = &'static str> {
                // Constant, because the name of a member that a newer version stored would be its own.
                const ALL: &[$set] = &$set::ALL;
                ALL.iter().map(|member| member.as_str())
            }
        }
    )+};
}

/// Of types that do not. The match fails to compile when a member is missing.
macro_rules! spelled {
    ($alias:ident = $set:ident as $title:literal { $($member:ident = $name:expr),+ $(,)? }) => {
        pub type $alias = Name<$set>;

        impl NameSet for $set {
            const TITLE: &'static str = $title;

            fn names() -> impl Iterator<Item = &'static str> {
                let name = |member: Self| match member {
                    $(Self::$member => $name),+
                };
                [$(Self::$member),+].into_iter().map(name)
            }
        }
    };
}

/// Of types that live where this crate cannot see them: a test of the gateway compares them.
macro_rules! told {
    ($alias:ident = $set:ident as $title:literal [$($name:literal),+ $(,)?]) => {
        pub enum $set {}

        pub type $alias = Name<$set>;

        impl NameSet for $set {
            const TITLE: &'static str = $title;

            fn names() -> impl Iterator<Item = &'static str> {
                [$($name),+].into_iter()
            }
        }
    };
}

listed!(
    AuditActionName = AuditAction,
    BreakerStateName = BreakerState,
    DispatchModeName = DispatchMode,
    EventKindName = EventKind,
    JobStateName = JobState,
    MisfireName = Misfire,
    NodeStateName = NodeState,
    OnTimeoutName = OnTimeout,
    OutputDecisionName = OutputDecision,
    OverlapName = Overlap,
    LanePriorityName = Priority,
    ReasonName = Reason,
    RoleName = Role,
    RunStateName = RunState,
    WhyReasonName = WhyReason,
);

pub type DecisionName = Name<Decision>;

impl NameSet for Decision {
    const TITLE: &'static str = "Decision";

    fn names() -> impl Iterator<Item = &'static str> {
        Self::words().into_iter().map(|(word, _)| word)
    }
}

spelled!(AccessName = Access as "Access" { Allow = "allow", Deny = "deny" });
spelled!(FindingKindName = FindingKind as "FindingKind" { Secrets = "secrets", Pii = "pii", Injection = "injection", Pattern = "pattern" });
spelled!(OutputStageName = OutputStage as "OutputStage" {
    Scanning = output_stage_name(Self::Scanning),
    Held = output_stage_name(Self::Held),
    Unchecked = output_stage_name(Self::Unchecked),
    Checked = output_stage_name(Self::Checked),
});
spelled!(PhaseName = Phase as "Phase" {
    Queued = "QUEUED",
    Running = "RUNNING",
    Succeeded = "SUCCEEDED",
    Failed = "FAILED",
    DeadLetter = "DEADLETTER",
});
spelled!(PolicyScopeName = RuleScope as "PolicyScope" {
    Base = scope_name(Self::Base),
    Tenant = scope_name(Self::Tenant),
    Workflow = scope_name(Self::Workflow),
});
spelled!(SlotOutcomeName = SlotOutcome as "SlotOutcome" {
    Due = Self::Due.as_str(),
    Started = Self::Started.as_str(),
    Queued = Self::Queued.as_str(),
    Skipped = Self::Skipped.as_str(),
    Missed = Self::Missed.as_str(),
    Refused = Self::Refused.as_str(),
});
spelled!(UndoStateName = UndoState as "UndoState" {
    Running = Self::Running.as_str(),
    Done = Self::Done.as_str(),
    Stuck = Self::Stuck.as_str(),
    Resolved = Self::Resolved.as_str(),
});

told!(AppliedChangeName = AppliedChangeSet as "AppliedChange" ["created", "updated", "unchanged"]);
told!(ConfigKindName = ConfigKindSet as "ConfigKind" ["pools", "timeouts", "quotas"]);
told!(CredentialKindName = CredentialKindSet as "CredentialKind" ["key", "certificate"]);
told!(LoopLeadName = LoopLeadSet as "LoopLead" ["own", "leads", "follows"]);
told!(PoolStateName = PoolStateSet as "PoolState" ["open", "paused", "draining"]);
told!(RuleOutcomeName = RuleOutcomeSet as "RuleOutcome" ["matched", "missed", "failed"]);
told!(SharingName = BreakerSharing as "Sharing" ["alone", "shared", "local_fallback"]);
told!(WorkerStatusName = WorkerStatusSet as "WorkerStatus" ["attached", "detached", "draining", "elsewhere"]);

/// How an attempt can end: some of the events of a job.
pub enum AttemptOutcome {}

pub type AttemptOutcomeName = Name<AttemptOutcome>;

impl NameSet for AttemptOutcome {
    const TITLE: &'static str = "AttemptOutcome";

    fn names() -> impl Iterator<Item = &'static str> {
        const ALL: &[EventKind] = &EventKind::ALL;
        ALL.iter().filter(|kind| kind.ends_an_attempt()).map(EventKind::as_str)
    }
}

/// By what dead letters are looked for: their reasons, and names that other systems and earlier versions have for some of them.
pub enum SoughtReason {}

pub type SoughtReasonName = Name<SoughtReason>;

impl NameSet for SoughtReason {
    const TITLE: &'static str = "SoughtReason";

    fn names() -> impl Iterator<Item = &'static str> {
        Reason::names().chain(["denied", "dispatch_failed"])
    }
}

macro_rules! of_enumerations {
    ($($alias:ident = $wire:ident $prefix:literal),+ $(,)?) => {$(
        impl From<v1::$wire> for $alias {
            fn from(value: v1::$wire) -> Self {
                Self::of_value(value.as_str_name(), $prefix)
            }
        }
    )+};
}

of_enumerations!(
    DecisionName = Decision "DECISION_",
    JobStateName = JobState "JOB_STATE_",
    LanePriorityName = Priority "PRIORITY_",
    NodeStateName = NodeState "NODE_STATE_",
    PhaseName = Phase "PHASE_",
    RunStateName = RunState "RUN_STATE_",
    SlotOutcomeName = SlotOutcome "SLOT_OUTCOME_",
    UndoStateName = UndoState "UNDO_STATE_",
);

impl From<bool> for AccessName {
    fn from(allowed: bool) -> Self {
        Self::new(if allowed { "allow" } else { "deny" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number of an enumeration on the wire but 0, which means unspecified.
    fn numbered<W: TryFrom<i32>>() -> impl Iterator<Item = W> {
        (1..).map_while(|number| W::try_from(number).ok())
    }

    fn is_told<S: NameSet, W: TryFrom<i32>>(wire_name: fn(&W) -> &'static str) -> bool
    where
        Name<S>: From<W>,
    {
        let told: Vec<String> = numbered::<W>().map(|value| String::from(&Name::<S>::from(value))).collect();
        let known: Vec<&str> = S::names().collect();
        assert!(
            !told.contains(&UNKNOWN.to_owned()),
            "{told:?} of {:?}",
            numbered::<W>().map(|w| wire_name(&w)).collect::<Vec<_>>()
        );
        told.len() == known.len() && known.iter().all(|name| told.iter().any(|told| told == name))
    }

    #[test]
    fn every_enumeration_on_the_wire_has_the_documented_names() {
        assert!(is_told::<Decision, v1::Decision>(v1::Decision::as_str_name));
        assert!(is_told::<JobState, v1::JobState>(v1::JobState::as_str_name));
        assert!(is_told::<Priority, v1::Priority>(v1::Priority::as_str_name));
        assert!(is_told::<NodeState, v1::NodeState>(v1::NodeState::as_str_name));
        assert!(is_told::<Phase, v1::Phase>(v1::Phase::as_str_name));
        assert!(is_told::<RunState, v1::RunState>(v1::RunState::as_str_name));
        assert!(is_told::<SlotOutcome, v1::SlotOutcome>(v1::SlotOutcome::as_str_name));
        assert!(is_told::<UndoState, v1::UndoState>(v1::UndoState::as_str_name));
    }

    #[test]
    fn a_name_that_only_a_newer_server_knows_is_shown() {
        assert_eq!(&*OverlapName::from("stack".to_owned()), "stack");
        assert_eq!(&*JobStateName::from(v1::JobState::Unspecified), UNKNOWN);
    }
}

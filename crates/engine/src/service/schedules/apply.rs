//! A file of schedules: each is made, changed, or left as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::audit::AuditAction;
use lockgate_core::request::{Caller, FieldError};
use lockgate_core::schedule::{Schedule, ScheduleDecision, Spec, load};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Mint, SlotQuery, StoreError};

use crate::error::ApiError;
use crate::schedules::{DecidedSchedule, Unturned};
use crate::service::to_the_end;
use crate::{Engine, Inner};

/// Each conflict means that a schedule was turned meanwhile.
const CONFLICTS_MAX: usize = 16;
/// Schedules applied together.
const TOGETHER: usize = 500;

/// What became of one schedule of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedSchedule {
    pub name: Arc<str>,
    /// 1, and one more with each change.
    pub revision: u32,
    pub changed: AppliedAs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppliedAs {
    Created,
    Updated,
    Unchanged,
}

impl Engine {
    /// Checks a file and applies every schedule in it, in the order of the file. Others stay as they are.
    pub async fn put_schedules(&self, caller: &Caller, file: &str, text: &str) -> Result<Vec<AppliedSchedule>, ApiError> {
        let specs = load(file, text).map_err(|errors| {
            ApiError::Invalid(errors.into_iter().map(|error| FieldError::new("schedules", error)).collect())
        })?;
        let (inner, caller) = (self.inner.clone(), caller.clone());
        to_the_end(async move {
            let mut applied = Vec::with_capacity(specs.len());
            for some in specs.chunks(TOGETHER) {
                applied.extend(inner.apply_some(&caller, some).await?);
            }
            Ok(applied)
        })
        .await?
    }
}

impl Inner {
    async fn apply_some(&self, caller: &Caller, specs: &[(Arc<str>, Spec)]) -> Result<Vec<AppliedSchedule>, ApiError> {
        let mut done: BTreeMap<Arc<str>, AppliedSchedule> = BTreeMap::new();
        for _ in 0..CONFLICTS_MAX {
            let left: Vec<_> = specs.iter().filter(|(name, _)| !done.contains_key(name)).collect();
            if left.is_empty() {
                return Ok(specs.iter().filter_map(|(name, _)| done.remove(name)).collect());
            }
            // By the Store's clock, like every turn.
            let (_, now) = self.store_time().await?;
            let mut there = self.settled_by_name(caller, &left, now).await?;
            let (mut decided, mut answers) = (Vec::new(), Vec::new());
            for (name, spec) in left {
                match self.apply_one(caller, name, spec, there.remove(name), now).await? {
                    Some((None, answer)) => drop(done.insert(name.clone(), answer)),
                    Some((Some(new), answer)) => {
                        decided.push(new);
                        answers.push(answer);
                    }
                    None => {}
                }
            }
            let (mut changed, mut refused) = (Vec::new(), None);
            for (answer, outcome) in answers.into_iter().zip(self.commit_turns(decided, now).await?) {
                match outcome {
                    Ok(()) => {
                        changed.push((caller.tenant.clone(), answer.name.clone()));
                        done.insert(answer.name.clone(), answer);
                    }
                    Err(Unturned::Refused(why)) => {
                        refused = Some(ApiError::refused(format_args!("schedule {}", answer.name), &why));
                    }
                    Err(Unturned::Conflict) => {}
                }
            }
            self.call_schedules(changed).await;
            if let Some(refused) = refused {
                return Err(refused);
            }
        }
        Err(ApiError::Unavailable("some schedules keep changing; apply the file again".into()))
    }

    /// Those that are there. What is due of those that are about to change is begun first, with the spec it was made of.
    async fn settled_by_name(
        &self,
        caller: &Caller,
        specs: &[&(Arc<str>, Spec)],
        now: Timestamp,
    ) -> Result<BTreeMap<Arc<str>, Schedule>, ApiError> {
        let keys: Vec<_> = specs.iter().map(|(name, _)| (caller.tenant.clone(), name.clone())).collect();
        let found = self.find_schedules(&keys).await?;
        let found = specs.iter().zip(found).filter_map(|((_, spec), schedule)| schedule.map(|schedule| (spec, schedule)));
        let (same, other): (Vec<_>, Vec<_>) = found.partition(|(spec, schedule)| schedule.spec == **spec);
        let other = other.into_iter().map(|(_, schedule)| schedule).collect();
        let settled = self.settle_schedules(other, now).await?;
        let all = same.into_iter().map(|(_, schedule)| schedule).chain(settled);
        Ok(all.map(|schedule| (schedule.name.clone(), schedule)).collect())
    }

    /// What is to be committed, if anything, and what to answer then. `None` if it has to be decided again.
    async fn apply_one(
        &self,
        caller: &Caller,
        name: &Arc<str>,
        spec: &Spec,
        there: Option<Schedule>,
        now: Timestamp,
    ) -> Result<Option<(Option<DecidedSchedule>, AppliedSchedule)>, StoreError> {
        let answer = |revision, changed| AppliedSchedule { name: name.clone(), revision, changed };
        let (turn, changed) = match there {
            None => (self.new_schedule(caller, name, spec, now).await?, AppliedAs::Created),
            Some(schedule) => match schedule.apply(spec.clone(), caller, now) {
                Err(_) => return Ok(None),
                Ok(None) => return Ok(Some((None, answer(schedule.revision, AppliedAs::Unchanged)))),
                Ok(Some(turn)) => (turn, AppliedAs::Updated),
            },
        };
        let revision = turn.schedule.revision;
        let detail = serde_json::json!({ "revision": revision, "content": spec.content_id() });
        let audit = vec![self.entry(caller, AuditAction::ScheduleStored, name, &detail)];
        Ok(Some((Some(DecidedSchedule { turn, gone: false, audit }), answer(revision, changed))))
    }

    /// A schedule of that name that was removed may have left slots ahead of a clock that went back: they stay decided.
    async fn new_schedule(
        &self,
        caller: &Caller,
        name: &Arc<str>,
        spec: &Spec,
        now: Timestamp,
    ) -> Result<ScheduleDecision, StoreError> {
        let query = SlotQuery { tenant: caller.tenant.clone(), schedule: name.clone(), cursor: None, limit: 1 };
        let last = self.ports.store.list_slots(query).await?.items.pop().map(|slot| slot.key.nominal);
        let birth: Arc<str> = self.ports.entropy.uuid(now).into();
        let from = last.map_or(now, |last| last.max(now));
        let schedule = Schedule::begin(name.clone(), spec.clone(), caller, birth, from);
        Ok(ScheduleDecision { schedule, fresh: Vec::new(), changed: Vec::new(), stop: Vec::new() })
    }
}

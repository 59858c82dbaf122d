//! Schedules and their slots as they are.

use std::sync::Arc;

use lockgate_core::request::Caller;
use lockgate_core::schedule::{Schedule, Slot};
use lockgate_core::time::Timestamp;
use lockgate_ports::{Cursor, Listing, SlotQuery};

use crate::error::ApiError;
use crate::service::read::check_limit;
use crate::{Engine, Inner};

/// How many of the next times a view shows.
const UPCOMING: usize = 5;

/// A schedule with the next of its own times. A paused one shows when it would come due.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    pub schedule: Schedule,
    pub upcoming: Vec<Timestamp>,
    /// Why nothing comes due, if its times cannot be worked out any more.
    pub fault: Option<String>,
}

impl Engine {
    /// The caller's schedules by name, after a name.
    pub async fn schedules(
        &self,
        caller: &Caller,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ScheduleView>, ApiError> {
        check_limit(limit)?;
        let schedules = self.inner.ports.store.list_schedules(&caller.tenant, after, limit).await?;
        Ok(schedules.into_iter().map(|schedule| self.inner.view_of(schedule)).collect())
    }

    pub async fn schedule(&self, caller: &Caller, name: &str) -> Result<ScheduleView, ApiError> {
        let schedule = self.inner.find_schedule(caller, name).await?;
        Ok(self.inner.view_of(schedule))
    }

    /// Slots of a schedule, the latest nominal time first, also of one that was removed.
    pub async fn slots(
        &self,
        caller: &Caller,
        name: &str,
        cursor: Option<Cursor>,
        limit: usize,
    ) -> Result<Listing<Slot>, ApiError> {
        check_limit(limit)?;
        let is_first = cursor.is_none();
        let query = SlotQuery { tenant: caller.tenant.clone(), schedule: name.into(), cursor, limit };
        let listing = self.inner.ports.store.list_slots(query).await?;
        // One without slots may be yet to come due; one that nobody knows must not look like that.
        if is_first && listing.items.is_empty() && listing.next.is_none() {
            self.inner.find_schedule(caller, name).await?;
        }
        Ok(listing)
    }
}

impl Inner {
    /// The caller's own schedule; another tenant's does not exist for it.
    pub(super) async fn find_schedule(&self, caller: &Caller, name: &str) -> Result<Schedule, ApiError> {
        let key = (caller.tenant.clone(), Arc::from(name));
        let found = self.find_schedules(&[key]).await?.pop().flatten();
        found.ok_or_else(|| ApiError::no_such("schedule", name))
    }

    pub(super) fn view_of(&self, schedule: Schedule) -> ScheduleView {
        match schedule.upcoming(self.ports.clock.now(), UPCOMING) {
            Ok(upcoming) => ScheduleView { schedule, upcoming, fault: None },
            Err(fault) => ScheduleView { schedule, upcoming: Vec::new(), fault: Some(fault) },
        }
    }
}

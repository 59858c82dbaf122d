//! Time zones by name, from a database that is compiled in: a name means the same zone in every installation, and nothing is
//! read at run time.

use std::sync::LazyLock;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::config::nearest;
use crate::time::Timestamp;

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// The zone of schedules without one.
pub(crate) const UTC: &str = "UTC";

pub(super) fn find(name: &str) -> Result<TimeZone, String> {
    ZONES.get(name).map_err(|_| {
        let names: Vec<String> = ZONES.available().map(|known| known.to_string()).collect();
        let hint = nearest(name, names.iter().map(String::as_str));
        let hint = hint.map(|word| format!("; did you mean {word:?}?")).unwrap_or_default();
        format!("{name:?} is no time zone; write one such as Europe/Berlin{hint}")
    })
}

/// RFC 3339 with the zone's offset at that time. Times beyond the calendar are shown as milliseconds.
pub(super) fn write(zone: &TimeZone, at: Timestamp) -> String {
    let Ok(instant) = jiff::Timestamp::from_millisecond(at.as_millis()) else { return at.to_string() };
    let offset = zone.to_offset(instant);
    instant.display_with_offset(offset).to_string()
}

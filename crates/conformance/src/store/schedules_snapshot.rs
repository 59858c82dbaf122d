//! Everything a Store answers about schedules and credentials, as comparable text.

use std::sync::Arc;

use lockgate_core::ids::TenantId;

use super::credentials::all_credentials;
use super::schedules_stage::all_slots;
use super::snapshot::{PAGE, Snapshot, add};
use super::stage::Found;
use lockgate_ports::store::Store;

pub(super) async fn schedules(store: &dyn Store, names: &[(TenantId, Arc<str>)], parts: &mut Snapshot) -> Found<()> {
    for ((tenant, name), schedule) in names.iter().zip(store.load_schedules(names).await?) {
        add(parts, format!("{tenant}/{name}"), schedule);
        add(parts, format!("slots of {tenant}/{name}"), all_slots(store, tenant.as_str(), name, PAGE).await?);
    }
    for tenant in ["acme", "other"] {
        let all = store.list_schedules(&tenant.into(), None, 100).await?;
        let after = all.first().map(|first| Arc::clone(&first.name));
        add(parts, format!("schedules of {tenant}"), all);
        add(parts, "those after the first", store.list_schedules(&tenant.into(), after.as_deref(), PAGE).await?);
    }
    add(parts, "due schedules", store.due_schedules(100).await?);
    add(parts, "first due schedules", store.due_schedules(2).await?);
    add(parts, "next schedule", store.next_schedule().await?);
    add(parts, "credentials", all_credentials(store, 2).await?);
    Ok(())
}

//! Turns of schedules: what they cost, and what is known of one whose answer was lost.

mod proxy;
mod stage;

use std::sync::Arc;
use std::time::Duration;

use lockgate_conformance::store::schedules_stage::{schedule, turn};
use lockgate_core::ids::TenantId;
use lockgate_core::schedule::{Schedule, Series, Slot, SlotKey, SlotOutcome};
use lockgate_core::time::Timestamp;
use lockgate_ports::store::{ScheduleChange, ScheduleStore, SlotQuery, TurnConflict};
use lockgate_ports::{StoreError, Upkeep};
use lockgate_postgres::{ConnectOptions, PostgresStore};
use proxy::{Cut, Proxy};
use stage::{Stage, server};

fn slot(nominal: i64) -> Slot {
    let key = SlotKey { series: Series::default(), nominal: Timestamp::from_millis(nominal) };
    Slot { key, outcome: SlotOutcome::Missed, reason: None, target: None, decided_at: Timestamp::from_millis(nominal) }
}

fn change(name: &str, version: i64, times: std::ops::Range<i64>) -> ScheduleChange {
    let schedule = Schedule { version, wakes_at: Some(Timestamp::from_millis(version)), ..schedule("acme", name) };
    ScheduleChange { fresh: times.map(slot).collect(), ..turn(schedule) }
}

fn key(name: &str) -> (TenantId, Arc<str>) {
    ("acme".into(), name.into())
}

fn slots(name: &str) -> SlotQuery {
    SlotQuery { tenant: "acme".into(), schedule: name.into(), cursor: None, limit: 50_000 }
}

#[tokio::test]
async fn a_call_is_two_round_trips_however_many_turns() {
    let stage = Stage::new().await;
    let store = stage.connect().await;
    let mut costs = Vec::new();
    // The first two prepare their statements. Births, moves, and several turns of one schedule.
    for (versions, count) in [(1..2, 2), (2..3, 2), (3..4, 2), (1..2, 1_000), (2..3, 1_000), (4..9, 2)] {
        let name = |n| if count == 2 { format!("few-{n}") } else { format!("many-{n}") };
        let turns = versions.flat_map(|version| (0..count).map(move |n| (n, version)));
        let changes = turns.map(|(n, version)| change(&name(n), version, version * 10..version * 10 + 2)).collect();
        let before = store.counters().round_trips;
        assert!(store.turn(changes).await.unwrap().iter().all(Result::is_ok));
        costs.push(store.counters().round_trips - before);
    }
    assert_eq!(costs[2..], [2, 2, 2, 2]);
    assert_eq!(store.due_schedules(5_000).await.unwrap().len(), 1_002);
}

#[tokio::test]
async fn a_turn_whose_answer_was_lost_is_unknown_and_read_back_by_its_version() {
    let stage = Stage::new().await;
    let proxy = Proxy::start(server().port()).await;
    let options = ConnectOptions { config: proxy.config(&stage.config), ..stage.options() };
    let store = PostgresStore::connect(options).await.unwrap();
    store.turn(vec![change("a", 1, 0..1)]).await.unwrap()[0].unwrap();
    for (cut, version) in [(Cut::AfterCommit, 2), (Cut::BeforeCommit, 3)] {
        proxy.cut(cut);
        let next = change("a", version, version..version + 1);
        let lost = store.turn(vec![next.clone()]).await;
        assert!(matches!(lost, Err(StoreError::UnknownOutcome(_))), "{lost:?}");
        // Waits for whatever the lost one still holds.
        let again = store.turn(vec![next]).await.unwrap();
        let found = store.load_schedules(&[key("a")]).await.unwrap().pop().flatten().unwrap();
        assert_eq!(found.version, version, "{cut:?}");
        assert_eq!(again, [if cut == Cut::AfterCommit { Err(TurnConflict) } else { Ok(()) }]);
    }
    let found = store.list_slots(slots("a")).await.unwrap().items;
    assert_eq!(found, [slot(3), slot(2), slot(0)]);
}

#[tokio::test]
async fn many_old_slots_are_pruned_in_batches_and_long_lists_in_pages() {
    let stage = Stage::new().await;
    let store = stage.connect().await;
    store.turn(vec![change("a", 1, 0..10_500)]).await.unwrap()[0].unwrap();
    let page = store.list_slots(slots("a")).await.unwrap();
    assert_eq!((page.items.len(), page.items[9_999].key.nominal.as_millis()), (10_000, 500), "a page is bounded");
    let rest = store.list_slots(SlotQuery { cursor: page.next, ..slots("a") }).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (500, None));
    stage.clock.advance(Duration::from_secs(60));
    assert_eq!(store.prune(Duration::ZERO, 2_500).await.unwrap(), 2_500);
    assert_eq!(store.prune(Duration::ZERO, 1_000).await.unwrap(), 1_000);
    let left = store.list_slots(slots("a")).await.unwrap().items;
    assert_eq!((left.len(), left.last().map(|slot| slot.key.nominal.as_millis())), (7_000, Some(3_500)));
}

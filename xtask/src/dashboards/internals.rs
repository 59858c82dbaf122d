//! Loops, the Store, lanes, the bus, sockets.

use super::panel::{Dashboard, Panel, Row, Unit};

pub(super) fn dashboard() -> Dashboard {
    Dashboard { name: "internals", title: "Lockgate: internals", rows: vec![loops(), ground(), outbox(), doors()] }
}

fn loops() -> Row {
    Row {
        title: "Loops",
        panels: vec![
            Panel::lines("Who leads", Unit::Count, &[("lockgate_leader > 0", "{{loop}} {{instance}}")]),
            Panel::lines(
                "Since the loop came round",
                Unit::Seconds,
                &[("time() - max by (loop) (lockgate_loop_tick_timestamp_seconds)", "{{loop}}")],
            ),
            Panel::lines(
                "Rounds that the Store did not answer",
                Unit::PerSecond,
                &[("sum by (loop) (rate(lockgate_reaper_list_errors_total[$__rate_interval]))", "{{loop}}")],
            ),
            Panel::lines("Past their deadline", Unit::Count, &[("max by (state) (lockgate_stale_jobs)", "{{state}}")]),
            Panel::lines("Tasks", Unit::Count, &[("lockgate_runtime_tasks", "{{instance}}")]),
            Panel::lines(
                "What processes find wrong with themselves",
                Unit::Count,
                &[("max by (code) (lockgate_health)", "{{code}}")],
            ),
            Panel::lines(
                "Since somebody could be called lost or late",
                Unit::Seconds,
                &[("max by (instance) (lockgate_reaping_deferred_seconds)", "{{instance}}")],
            ),
        ],
    }
}

fn ground() -> Row {
    Row {
        title: "Store, lanes, bus",
        panels: vec![
            Panel::lines(
                "Store",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_store_commits_total[$__rate_interval]))", "commits"),
                    ("sum(rate(lockgate_store_statements_total[$__rate_interval]))", "statements"),
                    ("sum(rate(lockgate_store_round_trips_total[$__rate_interval]))", "round trips"),
                    ("sum(rate(lockgate_store_rows_written_total[$__rate_interval]))", "rows written"),
                    ("sum(rate(lockgate_ready_rows_read_total[$__rate_interval]))", "rows read for lanes"),
                ],
            ),
            Panel::lines(
                "Lanes",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_lanes_round_trips_total[$__rate_interval]))", "round trips"),
                    ("sum(rate(lockgate_lanes_rebuilt_total[$__rate_interval]))", "rebuilt"),
                ],
            ),
            Panel::number("Lanes within reach", Unit::Count, "min(lockgate_lanes_reachable)", None),
            Panel::number("Bus within reach", Unit::Count, "min(lockgate_bus_reachable)", None),
            Panel::lines(
                "Bus",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_bus_published_total[$__rate_interval]))", "sent"),
                    ("sum(rate(lockgate_bus_received_total[$__rate_interval]))", "received"),
                    ("sum(rate(lockgate_bus_dropped_total[$__rate_interval]))", "dropped"),
                ],
            ),
        ],
    }
}

fn outbox() -> Row {
    Row {
        title: "Messages for outside",
        panels: vec![
            Panel::lines(
                "They leave",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_outbox_relayed_total[$__rate_interval]))", "delivered"),
                    ("sum(rate(lockgate_outbox_failed_total[$__rate_interval]))", "not taken"),
                ],
            ),
            Panel::lines("They wait", Unit::Count, &[("max(lockgate_outbox_waiting)", "messages")]),
            Panel::lines("The oldest waits", Unit::Seconds, &[("max(lockgate_outbox_oldest_seconds)", "oldest")]),
        ],
    }
}

fn doors() -> Row {
    Row {
        title: "Doors",
        panels: vec![
            Panel::lines(
                "Requests",
                Unit::PerSecond,
                &[("sum by (door, outcome) (rate(lockgate_api_requests_total[$__rate_interval]))", "{{door}} {{outcome}}")],
            ),
            Panel::lines(
                "Not let in",
                Unit::PerSecond,
                &[("sum by (code) (rate(lockgate_access_refused_total[$__rate_interval]))", "{{code}}")],
            ),
            Panel::lines("Connections", Unit::Count, &[("sum by (instance) (lockgate_connections_open)", "{{instance}}")]),
            Panel::lines(
                "Connections that had to wait, were closed, or got no TLS",
                Unit::PerSecond,
                &[
                    ("sum(rate(lockgate_connections_full_total[$__rate_interval]))", "full"),
                    ("sum(rate(lockgate_connections_refused_total[$__rate_interval]))", "one network's share"),
                    ("sum(rate(lockgate_tls_handshakes_failed_total[$__rate_interval]))", "no TLS"),
                ],
            ),
        ],
    }
}

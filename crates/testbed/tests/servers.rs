//! Every server can be had, is alone on its port, and ends with its value.

use std::net::{Ipv4Addr, TcpStream};

use lockgate_testbed::{Nats, Postgres, Redis};

fn listens(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[test]
fn two_redis_servers_run_side_by_side_and_end() {
    let (one, mut other) = (Redis::start().unwrap(), Redis::start().unwrap());
    assert_ne!(one.port(), other.port());
    assert_eq!(other.command("SET a 1").unwrap(), "+OK\r\n");
    other.restart().unwrap();
    assert_eq!(other.command("GET a").unwrap(), "$-1\r\n", "it forgets everything");
    let ports = [one.port(), other.port()];
    drop((one, other));
    assert_eq!(ports.map(listens), [false, false]);
}

#[test]
fn nats_starts_again_where_it_was() {
    let mut nats = Nats::start().unwrap();
    nats.restart().unwrap();
    nats.wipe().unwrap();
    let port = nats.port();
    assert!(listens(port));
    drop(nats);
    assert!(!listens(port));
}

#[test]
fn postgres_starts_again_where_it_was() {
    let mut postgres = Postgres::start().unwrap();
    let port = postgres.port();
    postgres.restart().unwrap();
    assert!(listens(port));
    drop(postgres);
    assert!(!listens(port));
}

//! Ports in TIME-WAIT, for connections that we open.

use super::pair::{Pair, SERVER_V4};
use crate::memory_link::MemoryLink;
use crate::socket::ConnectError;
use core::time::Duration;

/// Opens a connection from the only port there is, closes it, and opens another one after a while.
fn check(may_reuse: bool, after: Duration, expected: Result<(), ConnectError>) {
    let links = (MemoryLink::ethernet(1), MemoryLink::ethernet(2));
    let mut pair = Pair::over(links.0, links.1, |config| {
        config.ephemeral_ports = 40_000..=40_000;
        config.tcp.time_wait_reuse = may_reuse;
    });
    let listener = pair.listen(SERVER_V4);
    let (client, server) = pair.connect(listener, SERVER_V4);
    pair.client.close(client);
    pair.run();
    pair.server.close(server);
    pair.run();
    assert_eq!(pair.usages()[0].time_wait, 1);
    pair.wait(after);
    let target = SERVER_V4.parse().unwrap();
    let opened = pair.client.connect(target, None, true, 7).map(|_| ());
    assert_eq!(opened, expected, "{may_reuse}, {after:?}");
}

#[test]
fn a_port_in_time_wait_is_taken_over_after_a_second_if_that_is_wanted() {
    let second = Duration::from_secs(1);
    check(true, second / 2, Err(ConnectError::NoPort));
    check(true, second * 2, Ok(()));
    check(false, second * 2, Err(ConnectError::NoPort));
    check(false, second * 59, Err(ConnectError::NoPort));
    check(false, second * 61, Ok(()));
}

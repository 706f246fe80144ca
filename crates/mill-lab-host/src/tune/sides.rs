//! The host of each side.

use crate::host::Host;
use crate::topology::Testbed;

/// The machine whose files a host without a namespace of its own reads.
pub(super) fn machine(host: &Host) -> Host {
    match host {
        Host::Local | Host::Namespace(_) => Host::Local,
        Host::Remote(target) => Host::Remote(target.clone()),
    }
}

/// The machines of a testbed, each once, with the suffix of a key: none if there is only one.
pub(super) fn machines(testbed: &Testbed) -> Vec<(Host, &'static str)> {
    let server = machine(&testbed.server);
    let clients = testbed.clients.iter().map(machine);
    let mut others: Vec<Host> = clients.filter(|client| *client != server).collect();
    others.dedup();
    if others.is_empty() {
        return vec![(server, "")];
    }
    let others = others.into_iter().map(|host| (host, " (client)"));
    std::iter::once((server, " (server)"))
        .chain(others)
        .collect()
}

/// Both ends of the link: host, interface, and the suffix of a key.
pub(super) fn ends(testbed: &Testbed) -> Vec<(Host, String, &'static str)> {
    let server = (testbed.server.clone(), testbed.server_interface.clone());
    let mut ends = vec![server];
    for client in &testbed.clients {
        let end = (client.clone(), testbed.client_interface.clone());
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    let is_one = ends.len() == 1;
    let named = ends
        .into_iter()
        .enumerate()
        .map(|(index, (host, interface))| {
            let side = match index {
                _ if is_one => "",
                0 => " server",
                _ => " client",
            };
            (host, interface, side)
        });
    named.collect()
}

/// One line for all clients with the same result, and one each for the others.
pub(super) fn client_label(index: usize, count: usize, alike: bool) -> String {
    match (count, alike) {
        (1, _) => String::from(" (client)"),
        (_, true) => String::from(" (clients)"),
        (_, false) => format!(" (client {index})"),
    }
}

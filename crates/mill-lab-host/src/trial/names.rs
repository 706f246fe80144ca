//! The values of `${url}` and the like for a trial on a testbed.

use crate::host::Host;
use crate::names::{Names, affinity_masks, cpu_list};
use crate::prepared_testbed::PreparedTestbed;
use mill_lab::plan::Trial;
use mill_lab::recipe::{Side, System};
use std::net::TcpListener;

/// The names, and notes on ports that differ from the recipe's.
pub(super) fn of(trial: &Trial, prepared_testbed: &PreparedTestbed) -> (Names, Vec<String>) {
    let mut names = Names::default();
    let mut notes = Vec::new();
    let testbed = &prepared_testbed.testbed;
    let cpus = &testbed.server_cpus;
    names
        .set("interface", &testbed.server_interface)
        .set("client_interface", &testbed.client_interface)
        .set(
            "root",
            prepared_testbed.place.folder().join("root").display(),
        )
        .set("cpus", cpu_list(cpus))
        .set("cores", cpus.len())
        .set("affinity_masks", affinity_masks(cpus))
        .set("wrk_script", prepared_testbed.wrk_script.display());
    let system = &trial.setup.system;
    if testbed.server == Host::Local {
        for system in std::iter::once(system).chain(&trial.upstreams) {
            if let Some(port) = another_port(system) {
                notes.push(format!(
                    "{} listens on port {port}: {} could not be had",
                    system.title, system.port
                ));
                names.move_port(system, port);
            }
        }
    }
    if let Some(behind) = trial.upstreams.first() {
        let host = testbed.address_of(behind.side);
        names.set("upstream", format!("{host}:{}", names.port_of(behind)));
    }
    names.set("client_host", testbed.address_of(Side::Client));
    let port = names.port_of(system);
    let host = system.host.as_ref().unwrap_or(&testbed.address);
    let authority = match port {
        80 => host.clone(),
        port => format!("{host}:{port}"),
    };
    names
        .set("host", host)
        .set("port", port)
        .set(
            "run",
            prepared_testbed.place.folder().join(&system.name).display(),
        )
        .set(
            "url",
            format!("http://{authority}{}", trial.setup.load.path),
        );
    (names, notes)
}

/// A free port, if the recipe's is taken on this machine. Namespaces have all ports to themselves.
fn another_port(system: &System) -> Option<u16> {
    if TcpListener::bind(("0.0.0.0", system.port)).is_ok() {
        return None;
    }
    let free = TcpListener::bind(("0.0.0.0", 0)).and_then(|socket| socket.local_addr());
    free.ok().map(|address| address.port())
}

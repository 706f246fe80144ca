//! Clients that reuse ports which are in TIME-WAIT at the server, from other processes.

use crate::namespace::output_of;
use crate::overload::figure;
use crate::server::Site;
use crate::topology::{HOSTS, between, serve};

/// So few ports that each load needs all of them.
const FAR_STACK: &str = "af_xdp:mill1,ports=20000-20031,timestamps=";

/// A process's initial sequence numbers are random, the timestamps of its connections count from the boot: with
/// timestamps the server recognises a new connection by them, without it must give up the previous one by other rules
/// (RFC 6191; RFC 9293 3.10.7.4).
#[test]
fn a_load_that_follows_another_is_served_from_the_same_ports() {
    between(1500, |topology| {
        let site = Site::new();
        let _server = serve(&site);
        let url = format!("http://{}/", HOSTS[0]);
        for timestamps in ["on", "off"] {
            let stack = format!("{FAR_STACK}{timestamps}");
            for load in 0..5 {
                let mut words = vec!["load", "--stack", &stack, "-t", "1", "-c", "1", "-n", "32"];
                words.extend(["--no-keepalive", "--timeout", "800ms", "--json", "-", &url]);
                let run = || output_of(env!("CARGO_BIN_EXE_millstream"), &words);
                let output = topology.at_client(run);
                let text = String::from_utf8(output.stdout).unwrap();
                let answered = figure(&text, "\"answered\":");
                assert_eq!(answered, 32.0, "{timestamps}, load {load}: {text}");
            }
        }
    });
}

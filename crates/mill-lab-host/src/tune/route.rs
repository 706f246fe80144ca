//! The server's route to the clients: its initial congestion window (D5; RFC 6928 has 10 segments).

use super::interface::guarded;
use super::{Fate, Tuner, problem_of};
use crate::host::Host;
use crate::journal::errand;
use crate::topology::Testbed;

pub(super) fn apply(tuner: &mut Tuner<'_>, segments: u32, testbed: &Testbed) {
    let interface = &testbed.server_interface;
    let key = format!("initcwnd ({interface} server)");
    let wanted = segments.to_string();
    let fate = match guarded(tuner, &testbed.server, interface) {
        Some(problem) => Fate::refused(None, problem),
        None => change(tuner, &wanted, testbed),
    };
    tuner.say(key, &wanted, fate);
}

fn change(tuner: &mut Tuner<'_>, wanted: &str, testbed: &Testbed) -> Fate {
    let host = &testbed.server;
    let route = match find(host, testbed) {
        Ok(Some(route)) => route,
        Ok(None) => return Fate::refused(None, "absent: no route of that interface"),
        Err(error) => return Fate::refused(None, problem_of(&error)),
    };
    let before = Some(route.window().unwrap_or_else(|| String::from(DEFAULT)));
    if route.window().as_deref() == Some(wanted) {
        return Fate {
            before,
            problem: None,
        };
    }
    let (argv, undo) = (route.change(Some(wanted)), route.change(None));
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let undo: Vec<&str> = undo.iter().map(String::as_str).collect();
    let mut problem = tuner.run(host, &argv, &undo);
    if problem.is_none() {
        let now = find(host, testbed).ok().flatten();
        let now = now.and_then(|route| route.window());
        problem = match now.as_deref() {
            Some(now) if now == wanted => None,
            now => Some(format!("the kernel made it {}", now.unwrap_or(DEFAULT))),
        };
    }
    Fate { before, problem }
}

/// net/ipv4/tcp.c: TCP_INIT_CWND.
const DEFAULT: &str = "10, the kernel's own";

/// A line of `ip route show`, with the table that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Route {
    words: Vec<String>,
    table: &'static str,
    interface: String,
}

/// Over lo packets take the route of the address itself, in the table `local`; else that of the link.
fn find(host: &Host, testbed: &Testbed) -> std::io::Result<Option<Route>> {
    let interface = &testbed.server_interface;
    let table = if interface == "lo" { "local" } else { "main" };
    let argv = ["ip", "route", "show", "table", table, "dev", interface];
    let text = errand::run(host, &argv, None)?;
    let found = match table {
        "local" => pick_local(&text, &testbed.address),
        _ => pick_link(&text),
    };
    Ok(found.map(|line| Route {
        words: line.split_whitespace().map(String::from).collect(),
        table,
        interface: interface.clone(),
    }))
}

fn pick_local<'a>(text: &'a str, address: &str) -> Option<&'a str> {
    let prefix = format!("local {address} ");
    text.lines().find(|line| line.starts_with(&prefix))
}

/// The link's own network; where clients are behind a gateway, the default.
fn pick_link(text: &str) -> Option<&str> {
    let of_link = text.lines().find(|line| line.contains("scope link"));
    of_link.or_else(|| text.lines().find(|line| line.starts_with("default")))
}

impl Route {
    fn window(&self) -> Option<String> {
        let at = self.words.iter().position(|word| word == "initcwnd")?;
        self.words.get(at + 1).cloned()
    }

    /// The command that sets the window; without a window, the one that restores the route.
    fn change(&self, window: Option<&str>) -> Vec<String> {
        let mut words = self.words.clone();
        if let Some(window) = window {
            if let Some(at) = words.iter().position(|word| word == "initcwnd") {
                words.drain(at..(at + 2).min(words.len()));
            }
            words.extend([String::from("initcwnd"), String::from(window)]);
        }
        // What ip(8) prints as a state it does not take as a setting.
        words.retain(|word| !matches!(word.as_str(), "linkdown" | "dead" | "offload" | "trap"));
        let mut line = ["ip", "route", "change", "table", self.table]
            .map(String::from)
            .to_vec();
        line.extend(words);
        line.extend([String::from("dev"), self.interface.clone()]);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, table: &'static str, expected: [&str; 2]) {
        let route = Route {
            words: line.split_whitespace().map(String::from).collect(),
            table,
            interface: String::from("ms0"),
        };
        assert_eq!(route.change(Some("4")).join(" "), expected[0]);
        assert_eq!(route.change(None).join(" "), expected[1]);
    }

    #[test]
    fn a_route_is_changed_and_changed_back() {
        check(
            "10.213.0.0/16 proto kernel scope link src 10.213.0.1 linkdown",
            "main",
            [
                "ip route change table main 10.213.0.0/16 proto kernel scope link src 10.213.0.1 initcwnd 4 dev ms0",
                "ip route change table main 10.213.0.0/16 proto kernel scope link src 10.213.0.1 dev ms0",
            ],
        );
        check(
            "default via 192.0.2.1 initcwnd 20 mtu 1400",
            "main",
            [
                "ip route change table main default via 192.0.2.1 mtu 1400 initcwnd 4 dev ms0",
                "ip route change table main default via 192.0.2.1 initcwnd 20 mtu 1400 dev ms0",
            ],
        );
    }

    #[test]
    fn the_route_of_responses_is_selected() {
        let local = "local 127.0.0.0/8 proto kernel\nlocal 127.0.0.1 proto kernel scope host\n";
        assert_eq!(
            pick_local(local, "127.0.0.1"),
            Some("local 127.0.0.1 proto kernel scope host")
        );
        let main = "default via 192.0.2.1\n192.0.2.0/24 proto kernel scope link\n";
        assert_eq!(
            pick_link(main),
            Some("192.0.2.0/24 proto kernel scope link")
        );
        assert_eq!(
            pick_link("default via 192.0.2.1\n"),
            Some("default via 192.0.2.1")
        );
        assert_eq!(pick_link(""), None);
    }
}

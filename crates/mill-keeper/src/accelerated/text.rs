//! A line for each fact: its kind, and words. Kinds that a reader does not know are of another version, and skipped.

use super::{Accelerated, CONNECTIONS_MAX, Connection, LISTENERS_MAX, Listener};
use core::fmt::Write;

impl Accelerated {
    /// The text.
    pub fn emit(&self) -> String {
        let mut text = String::new();
        let mut line = |kind: &str, value: &dyn core::fmt::Display| {
            // Writing to a String does not fail.
            let _ = writeln!(text, "{kind} {value}");
        };
        line("process", &self.process);
        line("program", &one_line(&self.program));
        line("run", &self.run);
        if let Some(cluster) = &self.cluster {
            line("cluster", &one_line(cluster));
        }
        line("interface", &one_line(&self.interface));
        line("has-interface", &u8::from(self.has_interface));
        line("made-at", &self.made_at_ns);
        for (name, value) in &self.options {
            line("option", &format_args!("{name} {}", one_line(value)));
        }
        for (name, value) in &self.figures {
            line("figure", &format_args!("{name} {value}"));
        }
        for shown in self.listeners.iter().take(LISTENERS_MAX) {
            let numbers = format_args!("{} {} {}", shown.backlog, shown.waiting, shown.half_open);
            line("listener", &format_args!("{} {numbers}", shown.address));
        }
        line("connections", &self.connections_total);
        for shown in self.connections.iter().take(CONNECTIONS_MAX) {
            let flow = format_args!("{} {} {}", shown.state, shown.local, shown.remote);
            let numbers = format_args!("{} {}", shown.unread, shown.queued);
            line("connection", &format_args!("{flow} {numbers}"));
        }
        text
    }

    /// Reads a text; `None` if it has not even a process.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parsed = Self::default();
        for line in text.lines() {
            if let Some((kind, value)) = line.split_once(' ') {
                parsed.take(kind, value);
            }
        }
        (parsed.process != 0).then_some(parsed)
    }

    /// A line that makes no sense is left out.
    fn take(&mut self, kind: &str, value: &str) -> Option<()> {
        // The other process may have written anything.
        let value = &*one_line(value);
        let pair = || {
            let (name, value) = value.split_once(' ')?;
            Some((name.to_owned(), value))
        };
        match kind {
            "process" => self.process = value.parse().ok()?,
            "program" => self.program = value.to_owned(),
            "run" => self.run = value.parse().ok()?,
            "cluster" => self.cluster = Some(value.to_owned()),
            "interface" => self.interface = value.to_owned(),
            "has-interface" => self.has_interface = value == "1",
            "made-at" => self.made_at_ns = value.parse().ok()?,
            "option" => {
                let (name, value) = pair()?;
                self.options.push((name, value.to_owned()));
            }
            "figure" => {
                let (name, value) = pair()?;
                self.figures.push((name, value.parse().ok()?));
            }
            "listener" => self.listeners.push(listener(value)?),
            "connections" => self.connections_total = value.parse().ok()?,
            "connection" => self.connections.push(connection(value)?),
            _ => {}
        }
        Some(())
    }
}

fn listener(value: &str) -> Option<Listener> {
    let mut words = value.split(' ');
    Some(Listener {
        address: words.next()?.parse().ok()?,
        backlog: words.next()?.parse().ok()?,
        waiting: words.next()?.parse().ok()?,
        half_open: words.next()?.parse().ok()?,
    })
}

fn connection(value: &str) -> Option<Connection> {
    let mut words = value.split(' ');
    Some(Connection {
        state: words.next()?.to_owned(),
        local: words.next()?.parse().ok()?,
        remote: words.next()?.parse().ok()?,
        unread: words.next()?.parse().ok()?,
        queued: words.next()?.parse().ok()?,
    })
}

/// Names come from programs and their environment, and a terminal is where they end.
pub(super) fn one_line(value: &str) -> String {
    let shown = |letter: char| if letter.is_control() { '?' } else { letter };
    value.chars().take(VALUE_MAX).map(shown).collect()
}

/// Letters of a value.
const VALUE_MAX: usize = 256;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn example() -> Accelerated {
        let connection = |remote: &str, unread| Connection {
            state: String::from("established"),
            local: "10.50.0.1:80".parse().unwrap(),
            remote: remote.parse().unwrap(),
            unread,
            queued: 1448,
        };
        Accelerated {
            process: 4711,
            program: String::from("my nginx"),
            run: 99,
            cluster: Some(String::from("webs")),
            interface: String::from("eth0"),
            has_interface: true,
            made_at_ns: 5,
            options: vec![(String::from("fin-wait"), String::from("15s"))],
            figures: vec![(String::from("segments_received"), u64::MAX)],
            listeners: vec![Listener {
                address: "[::]:80".parse().unwrap(),
                backlog: 511,
                waiting: 2,
                half_open: 3,
            }],
            connections: vec![
                connection("10.50.0.2:5555", 0),
                connection("[fd50::2]:6", 7),
            ],
            connections_total: 2,
        }
    }

    #[test]
    fn what_is_emitted_is_parsed_to_the_same() {
        let example = example();
        assert_eq!(Accelerated::parse(&example.emit()), Some(example));
        let bare = Accelerated {
            process: 1,
            ..Accelerated::default()
        };
        assert_eq!(Accelerated::parse(&bare.emit()), Some(bare));
    }

    #[test]
    fn lines_of_another_version_or_cut_are_left_out() {
        let text = "process 3\ncolour red\nlistener 1.2.3.4:80 5\nconnection established 1.2.3.4:80 x 0 0\nfigure a\n";
        let parsed = Accelerated::parse(text).unwrap();
        assert_eq!(parsed.process, 3);
        assert!(parsed.listeners.is_empty() && parsed.connections.is_empty());
        assert_eq!(Accelerated::parse("program x\n"), None);
    }

    #[test]
    fn a_name_with_control_characters_is_one_line() {
        let mut odd = example();
        odd.program = String::from("a\nprocess 1\x1b[2J");
        let parsed = Accelerated::parse(&odd.emit()).unwrap();
        assert_eq!(parsed.process, 4711);
        assert_eq!(parsed.program, "a?process 1?[2J");
    }

    #[test]
    fn no_more_connections_are_shown_than_there_is_room_for() {
        let mut many = example();
        let longest = Connection {
            state: String::from("established"),
            local: "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"
                .parse()
                .unwrap(),
            remote: "[1111:2222:3333:4444:5555:6666:7777:8888]:65535"
                .parse()
                .unwrap(),
            unread: u64::from(u32::MAX),
            queued: u64::from(u32::MAX),
        };
        many.connections = vec![longest; CONNECTIONS_MAX + 1];
        many.listeners = vec![many.listeners[0]; LISTENERS_MAX + 1];
        let text = many.emit();
        assert!(
            text.len() < crate::accelerated::sheet::TEXT_MAX,
            "{}",
            text.len()
        );
        let parsed = Accelerated::parse(&text).unwrap();
        assert_eq!(parsed.connections.len(), CONNECTIONS_MAX);
        assert_eq!(parsed.listeners.len(), LISTENERS_MAX);
    }
}

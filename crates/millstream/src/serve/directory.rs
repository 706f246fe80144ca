//! The arguments of `millstream serve DIRECTORY`.

use mill_config::suggest::nearest;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A directory to serve.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Directory {
    /// As typed.
    pub(super) path: Vec<u8>,
    pub(super) port: u16,
    /// `--listen`: addresses with their ports. Without any it is loopback.
    pub(super) listen: Vec<SocketAddr>,
    /// `--dot-files`: also files whose names begin with a dot.
    pub(super) dot_files: bool,
}

/// Why a command line is refused.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) String);

/// An option and its value.
enum Setting {
    Port(u16),
    Listen(Vec<Listen>),
    DotFiles,
}

/// The value of `--listen`; the port may be given elsewhere.
type Listen = (IpAddr, Option<u16>);

/// Reads the arguments after `serve`, without those of the stack.
pub(super) fn parse(arguments: &[Vec<u8>]) -> Result<Directory, Refused> {
    let mut path = None;
    let mut port = None;
    let mut listen = Vec::new();
    let mut dot_files = false;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let text = String::from_utf8_lossy(argument).into_owned();
        let Some(option) = text.strip_prefix("--") else {
            if path.replace(argument.clone()).is_some() {
                return Err(Refused(format!(
                    "one directory can be served, \"{text}\" is a second"
                )));
            }
            continue;
        };
        let next = || {
            let next = arguments.next();
            next.map(|value| String::from_utf8_lossy(value).into_owned())
        };
        match setting(option, next)? {
            Setting::Port(number) => {
                if port.replace(number).is_some() {
                    return Err(Refused(String::from("\"--port\" stands twice")));
                }
            }
            Setting::Listen(addresses) => listen.extend(addresses),
            Setting::DotFiles => dot_files = true,
        }
    }
    let port = port.unwrap_or(DEFAULT_PORT);
    let mut addresses: Vec<SocketAddr> = Vec::new();
    for (address, own_port) in listen {
        let address = SocketAddr::new(address, own_port.unwrap_or(port));
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(Directory {
        path: path.unwrap_or_else(|| b".".to_vec()),
        port,
        listen: addresses,
        dot_files,
    })
}

/// Reads one option, whose value may be the next argument.
fn setting(option: &str, next: impl FnOnce() -> Option<String>) -> Result<Setting, Refused> {
    let (name, value) = match option.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (option, None),
    };
    match name {
        "port" => {
            let value = value.or_else(next);
            let value = value.ok_or_else(|| Refused(String::from("\"--port\" needs a number")))?;
            parse_port(&value).map(Setting::Port).ok_or_else(|| {
                Refused(format!(
                    "\"{value}\" is no port: a number from 1 to 65535 is wanted"
                ))
            })
        }
        "listen" => {
            let value = value.or_else(next).unwrap_or_default();
            parse_listen(&value).map(Setting::Listen)
        }
        "dot-files" => match value {
            None => Ok(Setting::DotFiles),
            Some(_) => Err(Refused(String::from("\"--dot-files\" takes no value"))),
        },
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Refused {
    let mut message = format!("unknown option \"--{name}\"");
    if let Some(known) = nearest(name.as_bytes(), OPTIONS.iter().copied()) {
        message.push_str(&format!(", did you mean \"--{known}\"?"));
    }
    message.push_str("\n\"millstream serve -h\" lists all options.");
    Refused(message)
}

fn parse_port(text: &str) -> Option<u16> {
    text.parse().ok().filter(|port| *port != 0)
}

/// An IP address with or without a port, or `*`: all addresses.
fn parse_listen(text: &str) -> Result<Vec<Listen>, Refused> {
    let refused = |why: &str| Err(Refused(format!("\"--listen\" {why}")));
    if text.is_empty() {
        return refused("needs an address of this machine, or * for all of them");
    }
    // One colon before a number is how users of nginx might write a port; two begin an IPv6 address.
    if parse_port(text.strip_prefix(':').unwrap_or(text)).is_some() {
        return refused(&format!(
            "takes addresses; \"{text}\" is a port, which \"--port\" sets"
        ));
    }
    if let Some(rest) = text.strip_prefix('*') {
        let port = match rest.strip_prefix(':') {
            None if rest.is_empty() => None,
            port => match port.and_then(parse_port) {
                None => return refused(&format!("\"{text}\" has no port behind its colon")),
                port => port,
            },
        };
        let all = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
        return Ok(all.map(|address: IpAddr| (address, port)).to_vec());
    }
    let in_brackets = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    if let Ok(address) = in_brackets.unwrap_or(text).parse::<IpAddr>() {
        return Ok(vec![(address, None)]);
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() != 0 => Ok(vec![(address.ip(), Some(address.port()))]),
        _ => refused(&format!(
            "\"{text}\" is no IP address: as in 192.0.2.1, 192.0.2.1:8000, [2001:db8::1]:8000, or * for all"
        )),
    }
}

const DEFAULT_PORT: u16 = 8080;

const OPTIONS: &[&str] = &[
    "port",
    "listen",
    "dot-files",
    "stack",
    "polling",
    "pcap",
    "help",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &[&str]) -> Result<Directory, Refused> {
        let arguments: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        parse(&arguments)
    }

    fn check(words: &[&str], path: &str, port: u16) {
        let expected = Directory {
            path: path.as_bytes().to_vec(),
            port,
            listen: Vec::new(),
            dot_files: false,
        };
        assert_eq!(parse_words(words), Ok(expected), "{words:?}");
    }

    fn check_listen(words: &[&str], expected: &[&str]) {
        let found = parse_words(words).unwrap().listen;
        let found: Vec<String> = found.iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, expected, "{words:?}");
    }

    fn check_refused(words: &[&str], expected: &str) {
        let Refused(message) = parse_words(words).unwrap_err();
        assert!(message.starts_with(expected), "{message}");
    }

    #[test]
    fn a_directory_and_a_port_are_all_it_takes() {
        check(&[], ".", 8080);
        check(&["site"], "site", 8080);
        check(&["--port", "81", "site"], "site", 81);
        check(&["site", "--port=82"], "site", 82);
        assert!(parse_words(&["--dot-files"]).unwrap().dot_files);
    }

    #[test]
    fn addresses_are_listed_with_their_ports() {
        check_listen(&["--listen", "192.0.2.1"], &["192.0.2.1:8080"]);
        check_listen(&["--listen=::1", "--port", "81"], &["[::1]:81"]);
        check_listen(&["--listen=[::1]"], &["[::1]:8080"]);
        check_listen(&["--listen", "[::1]:82", "--port=81"], &["[::1]:82"]);
        check_listen(
            &[
                "--listen",
                "127.0.0.2:82",
                "--listen",
                "127.0.0.3",
                "--listen=127.0.0.3",
            ],
            &["127.0.0.2:82", "127.0.0.3:8080"],
        );
        check_listen(&["--listen", "*"], &["0.0.0.0:8080", "[::]:8080"]);
        check_listen(&["--listen", "*:82"], &["0.0.0.0:82", "[::]:82"]);
    }

    #[test]
    fn typing_errors_get_an_answer() {
        check_refused(
            &["--prot", "81"],
            "unknown option \"--prot\", did you mean \"--port\"?",
        );
        check_refused(
            &["--lisen", "::1"],
            "unknown option \"--lisen\", did you mean \"--listen\"?",
        );
        check_refused(&["--frobnicate"], "unknown option \"--frobnicate\"\n");
        check_refused(&["--port"], "\"--port\" needs a number");
        check_refused(&["--port", "http"], "\"http\" is no port");
        check_refused(&["--port", "0"], "\"0\" is no port");
        check_refused(&["--port", "65536"], "\"65536\" is no port");
        check_refused(&["--port", "1", "--port", "2"], "\"--port\" stands twice");
        check_refused(&["--listen"], "\"--listen\" needs an address");
        check_refused(
            &["--listen", "8000"],
            "\"--listen\" takes addresses; \"8000\" is a port, which \"--port\" sets",
        );
        check_refused(&["--listen", ":8000"], "\"--listen\" takes addresses");
        check_refused(
            &["--listen", "example.org"],
            "\"--listen\" \"example.org\" is no IP address",
        );
        check_refused(
            &["--listen", "1.2.3.4:0"],
            "\"--listen\" \"1.2.3.4:0\" is no IP address",
        );
        check_refused(&["--listen", "*:x"], "\"--listen\" \"*:x\" has no port");
        check_refused(&["--dot-files=yes"], "\"--dot-files\" takes no value");
        check_refused(
            &["a", "b"],
            "one directory can be served, \"b\" is a second",
        );
    }
}

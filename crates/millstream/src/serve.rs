//! `millstream serve`: the options of nginx, or a directory and nothing else.

use crate::command::{self, Form};
use crate::help;
use crate::options::Options;
use crate::stack::{self, Taken};
use mill_config::source::Memory;
use mill_config::suggest::nearest;
use mill_device::specification::Specification;
use mill_device::specification::device::Device;
use mill_process::configuration::Texts;
use mill_process::launch::{self, Launch, Task};
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// A directory to serve.
#[derive(Debug, PartialEq, Eq)]
struct Directory {
    /// As it was typed.
    path: Vec<u8>,
    port: u16,
}

/// Why a command line is refused.
#[derive(Debug, PartialEq, Eq)]
struct Refused(String);

/// Does what stands after `millstream serve`.
pub(crate) fn run(arguments: &[Vec<u8>]) -> ExitCode {
    if arguments.iter().any(|argument| argument == b"--help") {
        help::print(&help::usage(Form::Serve));
        help::print(&stack::usage());
        return ExitCode::SUCCESS;
    }
    let Taken {
        stack,
        polling,
        rest,
    } = match stack::take(arguments) {
        Ok(taken) => taken,
        Err(message) => return refuse(&message),
    };
    let arguments = rest.as_slice();
    let one_dash = |argument: &Vec<u8>| argument.starts_with(b"-") && !argument.starts_with(b"--");
    if arguments.iter().any(one_dash) {
        return command::run(Form::Serve, arguments, stack, polling);
    }
    if polling.is_some() {
        return refuse(stack::POLLING_OF_NOTHING);
    }
    match parse(arguments).and_then(|directory| launch_of(&directory, stack)) {
        Ok(launch) => launch::run(&launch, &Task::Serve),
        Err(Refused(message)) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    help::complain(&format!("millstream: {message}\n"));
    ExitCode::FAILURE
}

fn parse(arguments: &[Vec<u8>]) -> Result<Directory, Refused> {
    let mut path = None;
    let mut port = DEFAULT_PORT;
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
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (option, None),
        };
        if name != "port" {
            return Err(unknown(name));
        }
        let next = || {
            arguments
                .next()
                .map(|value| String::from_utf8_lossy(value).into_owned())
        };
        let value = value.or_else(next);
        let value = value.ok_or_else(|| Refused(String::from("\"--port\" needs a number")))?;
        let number = value.parse().ok().filter(|port| *port != 0);
        port = number.ok_or_else(|| {
            Refused(format!(
                "\"{value}\" is no port: a number from 1 to 65535 is wanted"
            ))
        })?;
    }
    let path = path.unwrap_or_else(|| b".".to_vec());
    Ok(Directory { path, port })
}

fn unknown(name: &str) -> Refused {
    let mut message = format!("unknown option \"--{name}\"");
    if let Some(known) = nearest(name.as_bytes(), OPTIONS.iter().copied()) {
        message.push_str(&format!(", did you mean \"--{known}\"?"));
    }
    message.push_str("\n\"millstream serve -h\" lists all options.");
    Refused(message)
}

fn launch_of(directory: &Directory, stack: Option<Specification>) -> Result<Launch, Refused> {
    let shown = String::from_utf8_lossy(&directory.path).into_owned();
    let path = command::absolute(&directory.path);
    let refused = |why: &str| Refused(format!("\"{shown}\" {why}"));
    match std::fs::metadata(OsStr::from_bytes(&path)) {
        Ok(metadata) if !metadata.is_dir() => return Err(refused("is no directory")),
        Ok(_) => {}
        Err(error) => return Err(Refused(format!("\"{shown}\" cannot be served: {error}"))),
    }
    if path.contains(&b'$') {
        // The language has no way to write it: a variable's name would follow.
        return Err(refused(
            "has a \"$\" in its path; serve it through a link without",
        ));
    }
    let text = configuration(&path, directory.port, stack.as_ref());
    let mut launch = command::launch_of(Form::Serve, &Options::default());
    launch.options.paths.conf = CONFIGURATION.as_bytes().to_vec();
    launch.texts = Texts::Memory(Memory::new().with(CONFIGURATION, text));
    launch.has_pid_file = false;
    let port = directory.port;
    let path = String::from_utf8_lossy(&path).into_owned();
    let own = stack.iter().flat_map(|stack| &stack.addresses);
    let own: String = own
        .map(|own| format!("http://{}/ and ", SocketAddr::new(own.address, port)))
        .collect();
    launch.announcement = Some(format!(
        "{path} is at {own}http://localhost:{port}/ until Ctrl-C\n"
    ));
    launch.stack = stack;
    Ok(launch)
}

/// What would be written into an nginx.conf for this.
fn configuration(path: &[u8], port: u16, stack: Option<&Specification>) -> Vec<u8> {
    // A device carries one worker.
    let workers = if stack.is_some() { "1" } else { "auto" };
    // The wildcard is IPv4's; what the stack has of IPv6 is its own.
    let own = stack.iter().flat_map(|stack| &stack.addresses);
    // Those of an interface are the kernel's, all of them.
    let all = stack.is_some_and(|stack| matches!(stack.device, Device::AfXdp { .. })) && has_ipv6();
    let all = all.then(|| format!("listen [::]:{port}; "));
    let ipv6: String = own
        .filter(|own| own.address.is_ipv6())
        .map(|own| format!("listen [{}]:{port}; ", own.address))
        .chain(all)
        .collect();
    let mut quoted = Vec::new();
    for &byte in path {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(byte);
    }
    let head = format!(
        "daemon off;\nmaster_process off;\nworker_processes {workers};\nerror_log stderr warn;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n    access_log /dev/stdout;\n    sendfile on;\n    gzip on;\n    gzip_types {GZIP_TYPES};\n\
         {TYPES}    server {{\n        listen {port}; {ipv6}\n        autoindex on;\n        root \""
    );
    [head.as_bytes(), &quoted, b"\";\n    }\n}\n"].concat()
}

/// Whether this machine knows IPv6 at all.
fn has_ipv6() -> bool {
    Path::new("/proc/net/if_inet6").exists()
}

/// The name of the configuration in messages.
const CONFIGURATION: &str = "/(millstream serve)";

const DEFAULT_PORT: u16 = 8080;

const OPTIONS: &[&str] = &["port", "stack", "polling", "pcap", "help"];

/// Texts that get smaller.
const GZIP_TYPES: &str = "text/css text/plain text/javascript application/json image/svg+xml";

/// Media types of what directories of web pages hold.
const TYPES: &str = "    default_type application/octet-stream;
    types {
        text/html html htm; text/css css; text/plain txt md log conf; text/javascript js mjs;
        text/xml xml; text/csv csv; application/json json map; application/wasm wasm;
        application/pdf pdf; application/zip zip; application/gzip gz;
        image/gif gif; image/jpeg jpg jpeg; image/png png; image/svg+xml svg; image/webp webp;
        image/avif avif; image/x-icon ico; font/woff woff; font/woff2 woff2; font/ttf ttf;
        audio/mpeg mp3; audio/ogg ogg; video/mp4 mp4; video/webm webm;
    }
";

#[cfg(test)]
mod tests {
    use super::*;
    use mill_config::config::location::Document;

    fn parse_words(words: &[&str]) -> Result<Directory, Refused> {
        let arguments: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        parse(&arguments)
    }

    fn check(words: &[&str], path: &str, port: u16) {
        let path = path.as_bytes().to_vec();
        assert_eq!(
            parse_words(words),
            Ok(Directory { path, port }),
            "{words:?}"
        );
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
    }

    #[test]
    fn typing_errors_get_an_answer() {
        check_refused(
            &["--prot", "81"],
            "unknown option \"--prot\", did you mean \"--port\"?",
        );
        check_refused(&["--frobnicate"], "unknown option \"--frobnicate\"\n");
        check_refused(&["--port"], "\"--port\" needs a number");
        check_refused(&["--port", "http"], "\"http\" is no port");
        check_refused(&["--port", "0"], "\"0\" is no port");
        check_refused(
            &["a", "b"],
            "one directory can be served, \"b\" is a second",
        );
    }

    #[test]
    fn the_configuration_for_a_directory_is_a_good_one() {
        let text = configuration(br#"/a "quoted" \path"#, 8080, None);
        let mut options = mill_config::load::Options::default();
        options.paths.conf = CONFIGURATION.as_bytes().to_vec();
        let source = Memory::new().with(CONFIGURATION, text);
        let loaded = mill_config::load::load(&source, &options).unwrap();
        assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
        let http = loaded.config.http.unwrap();
        assert_eq!(http.listeners.len(), 1);
        let document = &http.servers.first().unwrap().location.document;
        let Document::Root(root) = document else {
            panic!("{document:?}");
        };
        assert_eq!(root.as_literal(), Some(&br#"/a "quoted" \path"#[..]));
    }
}

//! `millstream serve`: nginx's options, or a directory.

/// The arguments of a directory.
mod directory;

/// The addresses and URLs of a served directory.
mod reach;

use crate::command::{self, Beside, Form};
use crate::help;
use crate::options::Options;
use crate::stack::{self, Taken};
use crate::tempesta;
use directory::{Directory, Refused};
use mill_config::source::Memory;
use mill_device::specification::Specification;
use mill_server_host::configuration::Texts;
use mill_server_host::launch::{self, Launch, Task};
use mill_sys::interface;
use std::ffi::OsStr;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// Carries out the arguments after `millstream serve`.
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
    let (is_tempesta, rest) = match tempesta::take(rest) {
        Ok(taken) => taken,
        Err(message) => return refuse(&message),
    };
    let arguments = rest.as_slice();
    let one_dash = |argument: &&Vec<u8>| argument.starts_with(b"-") && !argument.starts_with(b"--");
    if let Some(option) = arguments.iter().find(one_dash) {
        return match mixed(arguments, option) {
            Some(message) => refuse(&message),
            None => {
                let beside = Beside {
                    stack,
                    polling,
                    is_tempesta,
                    restarts: false,
                };
                command::run(Form::Serve, arguments, beside)
            }
        };
    }
    if polling.is_some() {
        return refuse(stack::POLLING_OF_NOTHING);
    }
    let launched = directory::parse(arguments).and_then(|directory| launch_of(&directory, stack));
    match launched {
        Ok(launch) => launch::run(&launch, &Task::Serve),
        Err(Refused(message)) => refuse(&message),
    }
}

/// The error of a command line that mixes an option of nginx's with a directory.
fn mixed(arguments: &[Vec<u8>], option: &[u8]) -> Option<String> {
    let first = arguments.first().filter(|first| !first.starts_with(b"-"));
    let long = arguments
        .iter()
        .find(|argument| argument.starts_with(b"--") && argument.len() > 2);
    let (option, of_directory) = (
        String::from_utf8_lossy(option),
        String::from_utf8_lossy(first.or(long)?),
    );
    Some(format!(
        "\"{option}\" is for a configuration, \"{of_directory}\" for a directory: one of the two can be served. \
         A directory takes --port, --listen, --dot-files and --stack; a configuration says \"listen\" and \"root\"."
    ))
}

fn refuse(message: &str) -> ExitCode {
    help::complain(&format!("millstream: {message}\n"));
    ExitCode::FAILURE
}

fn launch_of(directory: &Directory, stack: Option<Specification>) -> Result<Launch, Refused> {
    let shown = String::from_utf8_lossy(&directory.path).into_owned();
    let path = command::absolute(&directory.path);
    let refused = |why: &str| Refused(format!("\"{shown}\" {why}"));
    match std::fs::metadata(OsStr::from_bytes(&path)) {
        Ok(metadata) if !metadata.is_dir() => {
            return Err(refused("is no directory; \"-c\" takes a configuration"));
        }
        Ok(_) => {}
        Err(error) => {
            let port = match shown.parse::<u16>() {
                Ok(_) => "; the port is set by \"--port\"",
                Err(_) => "",
            };
            return Err(Refused(format!(
                "\"{shown}\" cannot be served: {error}{port}"
            )));
        }
    }
    if path.contains(&b'$') {
        // The language cannot express it: a variable's name would follow.
        return Err(refused(
            "has a \"$\" in its path; serve it through a link without",
        ));
    }
    // Without the list it is served all the same, at the addresses that every machine has.
    let machine = interface::addresses().unwrap_or_default().into_iter();
    let machine: Vec<IpAddr> = machine.map(|known| known.address).collect();
    let listeners = reach::listeners(directory, stack.as_ref(), &machine);
    let text = configuration(&path, directory.dot_files, &listeners, stack.is_some());
    let mut launch = command::launch_of(Form::Serve, &Options::default());
    launch.options.paths.conf = CONFIGURATION.as_bytes().to_vec();
    launch.texts = Texts::Memory(Memory::new().with(CONFIGURATION, text));
    launch.has_pid_file = false;
    launch.by_options = true;
    launch.announcement = Some(announcement(&path, &reach::urls(&listeners, &machine)));
    launch.stack = stack;
    Ok(launch)
}

/// `/site is at http://a/, http://b/ and http://c/ until Ctrl-C`.
fn announcement(path: &[u8], urls: &[String]) -> String {
    let path = String::from_utf8_lossy(path);
    let urls = match urls.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => urls.concat(),
    };
    format!("{path} is at {urls} until Ctrl-C\n")
}

/// The equivalent nginx.conf.
fn configuration(path: &[u8], dot_files: bool, listeners: &[SocketAddr], stack: bool) -> Vec<u8> {
    // A device has one attachment.
    let workers = if stack { "1" } else { "auto" };
    let listen: String = listeners
        .iter()
        .map(|listener| format!("listen {listener}; "))
        .collect();
    let hidden = if dot_files {
        ""
    } else {
        "        location ~ /\\. { return 404; }\n"
    };
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
         {TYPES}    server {{\n        {listen}\n        autoindex on;\n{hidden}        root \""
    );
    [head.as_bytes(), &quoted, b"\";\n    }\n}\n"].concat()
}

/// The name of the configuration in messages.
const CONFIGURATION: &str = "/(millstream serve)";

/// Text types worth compressing.
const GZIP_TYPES: &str = "text/css text/plain text/javascript application/json image/svg+xml";

/// Media types of common web files.
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
    use mill_config::config::settings::Document;

    #[test]
    fn the_configuration_for_a_directory_is_a_good_one() {
        let listeners = ["127.0.0.1:8080", "[::1]:8080"].map(|text| text.parse().unwrap());
        let text = configuration(br#"/a "quoted" \path"#, false, &listeners, false);
        let mut options = mill_config::load::Options::default();
        options.paths.conf = CONFIGURATION.as_bytes().to_vec();
        let source = Memory::new().with(CONFIGURATION, text);
        let loaded = mill_config::load::load(&source, &options).unwrap();
        assert!(loaded.remarks.is_empty(), "{:?}", loaded.remarks);
        let http = loaded.config.http.unwrap();
        let at = http.listeners.iter();
        let at: Vec<String> = at.map(|listener| listener.address.to_string()).collect();
        assert_eq!(at, ["127.0.0.1:8080", "[::1]:8080"]);
        let document = &http.servers.first().unwrap().location.files.document;
        let Document::Root(root) = document else {
            panic!("{document:?}");
        };
        assert_eq!(root.as_literal(), Some(&br#"/a "quoted" \path"#[..]));
    }

    #[test]
    fn a_directory_and_a_configuration_are_not_mixed() {
        let check = |words: &[&str], expected: Option<&str>| {
            let arguments: Vec<Vec<u8>> =
                words.iter().map(|word| word.as_bytes().to_vec()).collect();
            let option = arguments.iter().find(|one| one.starts_with(b"-")).unwrap();
            let message = mixed(&arguments, option);
            assert_eq!(message.is_some(), expected.is_some(), "{message:?}");
            let message = message.unwrap_or_default();
            assert!(
                message.starts_with(expected.unwrap_or_default()),
                "{message}"
            );
        };
        check(&["-c", "a.conf"], None);
        check(&["-t", "-c", "a.conf"], None);
        check(
            &["site", "-t"],
            Some("\"-t\" is for a configuration, \"site\" for a directory"),
        );
        check(
            &["-c", "a.conf", "--port=80"],
            Some("\"-c\" is for a configuration, \"--port=80\" for"),
        );
    }

    #[test]
    fn all_urls_are_in_one_sentence() {
        let check = |urls: &[&str], expected: &str| {
            let urls: Vec<String> = urls.iter().map(|&url| url.to_owned()).collect();
            assert_eq!(announcement(b"/a", &urls), expected);
        };
        check(&["http://a/"], "/a is at http://a/ until Ctrl-C\n");
        check(&["a", "b", "c"], "/a is at a, b and c until Ctrl-C\n");
    }
}

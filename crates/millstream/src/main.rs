//! One binary: called by the name nginx or a load generator's it is that, else its first argument names the command.
#![forbid(unsafe_code)]

/// The options of nginx.
mod options;

/// Texts of `-h`, `-v` and of the bare command.
mod help;

/// The list of `-V`.
mod modules;

/// From options to a launch.
mod command;

/// `millstream serve`.
mod serve;

/// `--stack` and `--pcap`.
mod stack;

/// wrk, wrk2, ab and `millstream load`.
mod load;

/// `millstream lab`.
mod lab;

/// `millstream status`.
mod status;

/// `--tempesta`, and the verbs of Tempesta FW's service script.
mod tempesta;

/// `millstream run`.
mod run;

/// `millstream stackdump`.
mod stackdump;

/// The terminal.
mod screen;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<Vec<u8>> = std::env::args_os()
        .map(|argument| argument.as_bytes().to_vec())
        .collect();
    let (name, rest) = match arguments.split_first() {
        Some((name, rest)) => (Path::new(OsStr::from_bytes(name)).file_name(), rest),
        None => (None, &[][..]),
    };
    if name == Some(OsStr::new("nginx")) {
        return command::nginx(rest);
    }
    if name == Some(OsStr::new("onload")) {
        return run::onload(rest);
    }
    if name == Some(OsStr::new("onload_stackdump")) {
        return stackdump::run(rest);
    }
    if let Some(tool) = name.and_then(load::Tool::named) {
        return load::run(tool, rest);
    }
    if let Some((first, rest)) = rest.split_first()
        && let Some(tool) = load::Tool::of_command(first)
    {
        return load::run(tool, rest);
    }
    match rest.split_first() {
        Some((first, rest)) if first == b"serve" => serve::run(rest),
        Some((first, rest)) if first == b"lab" => lab::run(rest),
        Some((first, rest)) if first == b"status" => status::run(rest),
        Some((first, rest)) if first == b"run" => run::run(rest),
        Some((first, rest)) if first == b"stackdump" => stackdump::run(rest),
        Some((first, rest)) if first == b"tempesta" => tempesta::run(rest),
        Some((first, _)) if first == b"--version" || first == b"-v" => help::show_version(),
        Some((first, _)) if first == b"-V" => help::show_configure(),
        Some((first, _)) if !help::WORDS.contains(&first.as_slice()) => help::unknown(first),
        _ => help::show(),
    }
}

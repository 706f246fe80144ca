//! `cargo xtask conformance`: the cases of RFC 9111 and its kin that our own tests pass, put to caches as programs, one beside
//! the other, over loopback. What each of them does becomes `docs/measurements/cache_conformance.md`.
//!
//! Every case has a folder of targets for itself, so that all of a system's cases run at once: first all requests before,
//! then, each so many seconds behind, the last ones. It takes as long as the longest case, two minutes.

/// Requests, when they are due, and what comes of them.
mod client;
/// The server behind the caches.
mod origin;
/// The page.
mod report;
/// The programs, how they are configured, started and ended.
mod systems;

use mill_conformance::caching::{Case, cases};
use std::path::Path;
use std::process::ExitCode;
use std::{fs, io, thread};
use systems::{KINDS, Kind};

const USAGE: &str = "\
Usage: cargo xtask conformance [OPTION]...

Puts the cases of crates/mill-server/tests/it/proxy/caching to nginx, Varnish, HAProxy and Millstream, as far as they are
installed, and writes docs/measurements/cache_conformance.md. Takes two minutes; ports are free ones of 127.0.0.1.

  --only NAME    only this program, and the result to standard output; may be repeated
  --server PATH  the Millstream to ask (default: target/debug/millstream, which `cargo build -p millstream` makes)
";

/// The cases, from the root of the checkout; those of a folder in the order of their names.
const TEXTS: [&str; 2] = ["conformance.txt", "requirements"];
const FOLDER: &str = "crates/mill-server/tests/it/proxy/caching";

/// The page, from the root of the checkout.
const PAGE: &str = "docs/measurements/cache_conformance.md";

/// Cases that take longer are for simulated time.
const SECONDS_MAX: u64 = 120;

/// What the command line says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    only: Vec<String>,
    server: Option<String>,
    help: bool,
}

/// What one program has done with each case, in their order.
struct Done {
    kind: Kind,
    version: String,
    /// `None`: the program has not answered.
    outcomes: Vec<Option<String>>,
}

pub(crate) fn run(root: &Path, arguments: &[&str]) -> ExitCode {
    let options = match parse(arguments) {
        Ok(options) if options.help => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Ok(options) => options,
        Err(what) => {
            eprintln!("xtask conformance: {what}\n\n{USAGE}");
            return ExitCode::from(crate::EXIT_USAGE);
        }
    };
    match carry_out(root, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask conformance: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(arguments: &[&str]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let mut value = || {
            let value = arguments.next();
            value
                .map(ToString::to_string)
                .ok_or(format!("{argument} wants a value"))
        };
        match *argument {
            "--only" => options.only.push(value()?),
            "--server" => options.server = Some(value()?),
            "help" | "-h" | "--help" => options.help = true,
            other => return Err(format!("cannot make sense of \"{other}\"")),
        }
    }
    let is_known = |name: &&String| KINDS.iter().any(|kind| kind.name() == name.as_str());
    match options.only.iter().find(|name| !is_known(name)) {
        Some(name) => Err(format!("\"{name}\" is none of the programs")),
        None => Ok(options),
    }
}

fn carry_out(root: &Path, options: &Options) -> io::Result<()> {
    let cases = read_cases(root)?;
    let server = options.server.as_ref().map_or_else(
        || root.join("target/debug/millstream"),
        |server| Path::new(server).to_path_buf(),
    );
    let is_asked =
        |kind: &Kind| options.only.is_empty() || options.only.iter().any(|it| it == kind.name());
    let kinds: Vec<Kind> = KINDS.into_iter().filter(is_asked).collect();
    let (cases_of_all, server) = (&cases, &server);
    let results: Vec<io::Result<Done>> = thread::scope(|scope| {
        let running = kinds
            .iter()
            .map(|kind| scope.spawn(move || ask(*kind, server, cases_of_all)));
        let running: Vec<_> = running.collect();
        let ended = running.into_iter().map(|it| it.join());
        let failed = |_| Err(io::Error::other("its thread has panicked"));
        ended.map(|it| it.unwrap_or_else(failed)).collect()
    });
    let mut done = Vec::new();
    for (kind, result) in kinds.iter().zip(results) {
        match result {
            Ok(result) => done.push(result),
            Err(error) => eprintln!("{}: {error}", kind.title()),
        }
    }
    let page = report::page(&cases, &done);
    if options.only.is_empty() && done.len() == KINDS.len() {
        fs::write(root.join(PAGE), page)?;
        println!("{PAGE} is written");
    } else {
        print!("{page}");
    }
    Ok(())
}

fn read_cases(root: &Path) -> io::Result<Vec<Case>> {
    let folder = root.join(FOLDER);
    let mut paths = Vec::new();
    for name in TEXTS {
        let path = folder.join(name);
        if path.is_dir() {
            let entries: io::Result<Vec<_>> = fs::read_dir(path)?.collect();
            let mut inner: Vec<_> = entries?.iter().map(fs::DirEntry::path).collect();
            inner.sort();
            paths.append(&mut inner);
        } else {
            paths.push(path);
        }
    }
    let texts: io::Result<Vec<String>> = paths.iter().map(fs::read_to_string).collect();
    let all = texts?;
    let all = all.iter().flat_map(|text| cases(text));
    Ok(all.filter(|case| case.seconds <= SECONDS_MAX).collect())
}

/// Puts all cases to one program.
fn ask(kind: Kind, server: &Path, cases: &[Case]) -> io::Result<Done> {
    let origin = origin::start(cases)?;
    let system = systems::start(kind, server, origin.port())?;
    let outcomes = client::ask_all(cases, system.port(), &origin);
    Ok(Done {
        kind,
        version: system.version().to_owned(),
        outcomes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_unknown_ones_refused() {
        let options = parse(&["--only", "nginx", "--server", "/x"]);
        let expected = Options {
            only: vec![String::from("nginx")],
            server: Some(String::from("/x")),
            help: false,
        };
        assert_eq!(options, Ok(expected));
        assert_eq!(
            parse(&["--only"]),
            Err(String::from("--only wants a value"))
        );
        let none = parse(&["--only", "squid"]);
        assert_eq!(none, Err(String::from("\"squid\" is none of the programs")));
        let unknown = parse(&["--fast"]);
        assert_eq!(
            unknown,
            Err(String::from("cannot make sense of \"--fast\""))
        );
    }

    #[test]
    fn the_cases_of_our_own_tests_are_found() {
        let cases = read_cases(crate::root()).unwrap();
        assert!(cases.len() > 500, "{}", cases.len());
    }
}

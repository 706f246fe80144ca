//! `millstream run`: another program on our stack.

use crate::help;
use mill_config::suggest::nearest;
use mill_keeper::launch::Launch;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::process::ExitCode;

/// `millstream run …`; returns only where the program was not started.
pub(crate) fn run(words: &[Vec<u8>]) -> ExitCode {
    match parse(words) {
        Ok(Asked::Help) => {
            help::print(HELP);
            ExitCode::SUCCESS
        }
        Ok(Asked::Launch(launch)) => {
            let what = launch.run(|notice| help::complain(&format!("millstream: {notice}\n")));
            help::complain(&format!("millstream run: {what}\n"));
            ExitCode::FAILURE
        }
        Err(what) => {
            help::complain(&format!(
                "millstream run: {what}\n\"millstream run --help\" lists all options.\n"
            ));
            ExitCode::from(USAGE_CODE)
        }
    }
}

/// Called as `onload`: the command line of Onload.
pub(crate) fn onload(words: &[Vec<u8>]) -> ExitCode {
    let words: Vec<OsString> = words.iter().cloned().map(OsString::from_vec).collect();
    match mill_keeper::onload::parse(&words, std::env::vars_os()) {
        Ok(mill_keeper::onload::Asked::Help) => {
            help::print(ONLOAD_HELP);
            ExitCode::SUCCESS
        }
        Ok(mill_keeper::onload::Asked::Launch(launch, notices, or_fail)) => {
            let say = |notice: &str| help::complain(&format!("onload: {notice}\n"));
            notices.iter().for_each(|notice| say(notice));
            let what = launch.run(say);
            let what = match or_fail {
                true => what,
                false => mill_keeper::onload::run_beside(&launch, what, say),
            };
            help::complain(&format!("onload: {what}\n"));
            ExitCode::FAILURE
        }
        Err(what) => {
            help::complain(&format!("onload: {what}\n"));
            ExitCode::from(USAGE_CODE)
        }
    }
}

#[derive(Debug)]
enum Asked {
    Help,
    Launch(Launch),
}

const OPTIONS: [&str; 9] = [
    "--stack",
    "--profile",
    "--polling",
    "--option",
    "--library",
    "--cluster",
    "--force",
    "--verbose",
    "--help",
];

fn unknown(name: &str) -> String {
    let mut message = format!("\"{name}\" is no option of \"run\"");
    if let Some(known) = nearest(name.as_bytes(), OPTIONS.iter().copied()) {
        message.push_str(&format!(", did you mean \"{known}\"?"));
    }
    message
}

/// Reads the options before the program; the error is a sentence.
fn parse(words: &[Vec<u8>]) -> Result<Asked, String> {
    let (mut stack, mut options) = (None, Vec::new());
    let (mut force, mut verbose) = (false, false);
    let (mut library, mut cluster) = (None, None);
    let mut words = words.iter();
    let program = loop {
        let Some(word) = words.next() else {
            return Err(String::from("there is no program to run"));
        };
        let text = String::from_utf8_lossy(word).into_owned();
        let (name, inner) = match text.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (text.as_str(), None),
        };
        let mut value = || {
            let following = || {
                words
                    .next()
                    .map(|word| String::from_utf8_lossy(word).into_owned())
            };
            let value = inner.clone().or_else(following);
            value.ok_or_else(|| format!("\"{name}\" needs a value"))
        };
        match name {
            "--help" | "-h" => return Ok(Asked::Help),
            "--stack" => stack = Some(value()?),
            "-p" | "--profile" => options.push(format!("profile={}", value()?)),
            "--polling" => options.push(format!("polling={}", value()?)),
            "--option" => options.push(value()?),
            "--library" => library = Some(PathBuf::from(value()?)),
            "--cluster" => cluster = Some(value()?),
            "--force" => force = true,
            "-v" | "--verbose" => verbose = true,
            "--" => break words.next().ok_or("there is no program behind \"--\"")?,
            name if name.starts_with('-') => return Err(unknown(name)),
            _ => break word,
        }
    };
    let stack = stack
        .ok_or("\"--stack\" is missing: it says which interface, as in \"--stack af_xdp:eth0\"")?;
    options.insert(0, stack);
    let os = |word: &Vec<u8>| OsString::from_vec(word.clone());
    Ok(Asked::Launch(Launch {
        stack: options.join(","),
        program: os(program),
        arguments: words.map(os).collect(),
        force,
        library,
        cluster,
        verbose,
    }))
}

/// As of other commands with a wrong command line.
const USAGE_CODE: u8 = 2;

const HELP: &str = "\
Usage: millstream run --stack af_xdp:INTERFACE[,OPTION=VALUE]... [OPTIONS] [--] PROGRAM [ARGUMENTS]

Runs a program, as it is, on the TCP/IP stack of its own that Millstream has: its connections over the interface pass by the
kernel's stack; all others, loopback too, are the kernel's as ever.

  --stack TEXT        the interface, and options of the stack; \"millstream serve --help\" lists them
  -p, --profile NAME  a profile of options: balanced, performance, latency, throughput, wan, safe
  --polling WHEN      interrupt, adaptive=50us, sleep-spin=50us, spin, or rate=HZ
  --option NAME=VALUE one more option of the stack
  --library FILE      libmillstream.so, if it is not beside this program
  --cluster NAME      what \"millstream stackdump\" calls the program's processes together; else it is the program's name
  -v, --verbose       each process of the program says which stack it has, once it has one
  --force             a program whose calls cannot be seen (static, Go) runs on the kernel's stack, with a notice

A program that was started otherwise takes part with LD_PRELOAD=libmillstream.so and MILLSTREAM_KEEPER, which name the library
and the descriptor of the keeper; or with MILLSTREAM_STACK=af_xdp:INTERFACE, by which it starts anew as \"onload\" starts it.
";

const ONLOAD_HELP: &str = "\
Usage: onload [-p PROFILE|--profile=PROFILE]... [--app-handler HANDLER] [-v] [--] PROGRAM [ARGUMENTS]

Onload's command line over Millstream's stack: millstream run in its words. MILLSTREAM_STACK=af_xdp:INTERFACE in the environment says which
interface. Profiles are Onload's names, as nginx-balanced, or .opf files; EF_... variables count where the stack has a counterpart.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Asked, String> {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        parse(&words)
    }

    #[test]
    fn options_end_at_the_program_whose_own_are_left_alone() {
        let line = "--stack=af_xdp:eth0 -p balanced --verbose --option mss=1000 nginx -p /srv -v";
        let Ok(Asked::Launch(launch)) = parsed(line) else {
            panic!("{line}");
        };
        assert_eq!(launch.stack, "af_xdp:eth0,profile=balanced,mss=1000");
        assert_eq!(launch.program, "nginx");
        assert_eq!(launch.arguments, ["-p", "/srv", "-v"]);
        assert!(launch.verbose && !launch.force);
    }

    #[test]
    fn what_is_missing_or_unknown_is_named() {
        for (line, named) in [
            ("--stack af_xdp:eth0", "no program"),
            ("--stack af_xdp:eth0 --", "no program"),
            ("nginx", "\"--stack\" is missing"),
            ("--stak af_xdp:eth0 nginx", "did you mean \"--stack\"?"),
            ("nginx --stack", "\"--stack\" is missing"),
            ("--stack", "needs a value"),
        ] {
            let found = parsed(line).err();
            assert!(
                found.as_ref().is_some_and(|what| what.contains(named)),
                "{line}: {found:?}"
            );
        }
    }
}

//! `--stack`, `--polling` and `--pcap`: the network stack of our own, for serving and for load.

use mill_device::specification::{self, Specification, options, profile};
use mill_stack::polling::Polling;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The options of the stack in a command line, and the other arguments.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) stack: Option<Specification>,
    /// For a stack in the configuration: otherwise it is part of the stack.
    pub(crate) polling: Option<Polling>,
    pub(crate) rest: Vec<Vec<u8>>,
}

/// Takes `--stack`, `--polling` and `--pcap` out of a command line; the error is a message.
pub(crate) fn take(arguments: &[Vec<u8>]) -> Result<Taken, String> {
    let mut rest = Vec::new();
    let mut text = None;
    let mut polling = None;
    let mut pcap = None;
    let mut arguments = arguments.iter();
    while let Some(argument) = arguments.next() {
        let (name, place) = if is_option(argument, b"--stack") {
            ("--stack", &mut text)
        } else if is_option(argument, b"--polling") {
            ("--polling", &mut polling)
        } else if is_option(argument, b"--pcap") {
            ("--pcap", &mut pcap)
        } else {
            rest.push(argument.clone());
            continue;
        };
        let value = match argument.get(name.len()..) {
            Some([b'=', value @ ..]) => value.to_vec(),
            _ => arguments.next().cloned().unwrap_or_default(),
        };
        if value.is_empty() {
            return Err(format!("\"{name}\" needs a value, {}", example(name)));
        }
        if place.replace(value).is_some() {
            return Err(format!("\"{name}\" stands twice"));
        }
    }
    let polling = polling.map(|polling| parse_polling(&polling)).transpose()?;
    let is_polling_said = text.as_ref().is_some_and(|text| {
        let mut words = text.split(|&byte| byte == b',');
        words.any(|word| word.starts_with(b"polling="))
    });
    if polling.is_some() && is_polling_said {
        let what = "\"--polling\" and \"polling=\" are two names of one option: give one of them";
        return Err(String::from(what));
    }
    let mut stack = text.map(|text| parse(&text)).transpose()?;
    let polling = match (&mut stack, polling) {
        (Some(stack), Some(polling)) => {
            stack.set_polling(polling, "--polling");
            None
        }
        (_, polling) => polling,
    };
    let stack = match (stack, pcap) {
        (Some(stack), Some(_)) if stack.pcap.is_some() => {
            let what = "\"--pcap\" and \"pcap=\" are two names of one option: give one of them";
            return Err(String::from(what));
        }
        (Some(mut stack), Some(path)) => {
            stack.pcap = Some(PathBuf::from(OsString::from_vec(path)));
            Some(stack)
        }
        (None, Some(_)) => {
            let what = "\"--pcap\" captures the frames of a stack of our own: it needs \"--stack\"";
            return Err(String::from(what));
        }
        (stack, None) => stack,
    };
    Ok(Taken {
        stack,
        polling,
        rest,
    })
}

/// The options of `--stack`, for help.
pub(crate) fn usage() -> String {
    format!(
        "The network stack of our own, beside kernel sockets:\n\
         \x20 --stack tap:NAME,address=ADDRESS/LEN[,host=ADDRESS/LEN][,OPTION=VALUE]…\n\
         \x20            makes the TAP device NAME, gives this machine's side the host's address, and serves on the\n\
         \x20            stack's; all of it is gone at the end.\n\
         \x20 --stack af_xdp:INTERFACE[,OPTION=VALUE]…\n\
         \x20            takes what is for served ports from an interface of this machine; all else is the kernel's.\n\
         \x20            Both take root.\n\
         \x20 --stack memif:SOCKET,role=master|slave,address=ADDRESS/LEN[,OPTION=VALUE]…\n\
         \x20            serves by memory that is shared with another process.\n\
         \x20 --stack dpdk:PCI-ADDRESS|dpdk:vdev=NAME[,ARGUMENT=VALUE]…,address=ADDRESS/LEN[,OPTION=VALUE]…\n\
         \x20            serves at a card or a virtual device of DPDK, whose arguments precede those of the stack.\n\
         \x20            In a configuration any of them: network_stack tap:NAME address=ADDRESS/LEN …;\n\
         \x20 --polling WORD  the option polling= of the stack\n\
         \x20 --pcap FILE  writes all frames to FILE, for tcpdump and Wireshark\n\
         Options of the stack, and what holds without them:\n{}\
         Profiles, which are named sets of options: profile=NAME, or profile=FILE with a line for each option. Options\n\
         that are said singly go before them:\n{}",
        options::help(),
        profile::help()
    )
}

fn is_option(argument: &[u8], name: &[u8]) -> bool {
    match argument.strip_prefix(name) {
        Some(rest) => rest.is_empty() || rest.starts_with(b"="),
        None => false,
    }
}

fn example(name: &str) -> &'static str {
    match name {
        "--pcap" => "the name of a file",
        "--polling" => "as in \"--polling spin\"",
        _ => "as in \"--stack tap:ms0,address=10.77.0.2/24,host=10.77.0.1/24\"",
    }
}

fn parse(text: &[u8]) -> Result<Specification, String> {
    let text = String::from_utf8_lossy(text);
    Specification::parse(&text).map_err(|error| {
        format!("--stack: {error}\n\"millstream serve --help\" lists the options of a stack.")
    })
}

fn parse_polling(text: &[u8]) -> Result<Polling, String> {
    let text = String::from_utf8_lossy(text);
    specification::polling(&text).map_err(|error| format!("--polling: {error}"))
}

/// The error if no configuration can name a stack.
pub(crate) const POLLING_OF_NOTHING: &str =
    "\"--polling\" sets the polling mode of a stack of our own: it needs \"--stack\"";

#[cfg(test)]
mod tests {
    use super::*;

    fn take_words(words: &[&str]) -> Result<Taken, String> {
        let arguments: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        take(&arguments)
    }

    const STACK: &str = "tap:ms0,address=10.77.0.2/24";

    #[test]
    fn the_stack_is_taken_out_of_a_command_line_wherever_it_stands() {
        let joined = format!("--stack={STACK}");
        for words in [
            &["--stack", STACK, "-c", "a.conf"][..],
            &["-c", "--stack", STACK, "a.conf"],
            &["-c", "a.conf", &joined],
        ] {
            let taken = take_words(words).unwrap();
            assert_eq!(taken.rest, [b"-c".to_vec(), b"a.conf".to_vec()]);
            assert_eq!(taken.stack.unwrap().device.to_string(), "ms0");
        }
        let taken = take_words(&["--stacks", "x"]).unwrap();
        assert!(taken.stack.is_none() && taken.rest.len() == 2);
    }

    #[test]
    fn polling_is_part_of_the_stack_or_waits_for_one() {
        let taken = take_words(&["--polling", "spin", "--stack", STACK]).unwrap();
        assert_eq!(taken.stack.unwrap().polling, Polling::Spin);
        assert_eq!(taken.polling, None);
        let profile = format!("{STACK},profile=safe");
        let taken = take_words(&["--stack", &profile, "--polling=hz=1000"]).unwrap();
        assert_eq!(taken.stack.unwrap().polling, Polling::Rate(1000));
        let taken = take_words(&["--polling=interrupt"]).unwrap();
        assert_eq!(taken.polling, Some(Polling::Interrupt));
        let twice = format!("{STACK},polling=spin");
        let refused = take_words(&["--stack", &twice, "--polling", "spin"]).unwrap_err();
        assert!(refused.ends_with("give one of them"), "{refused}");
        let refused = take_words(&["--polling", "often"]).unwrap_err();
        assert!(
            refused.starts_with("--polling: \"often\" means nothing: \"interrupt\""),
            "{refused}"
        );
    }

    #[test]
    fn a_capture_needs_a_stack() {
        let taken = take_words(&["--pcap", "a.pcap", "--stack", STACK]).unwrap();
        assert_eq!(taken.stack.unwrap().pcap, Some(PathBuf::from("a.pcap")));
        let refused = take_words(&["--pcap", "a.pcap"]).unwrap_err();
        assert!(refused.ends_with("it needs \"--stack\""), "{refused}");
        let twice = format!("{STACK},pcap=a.pcap");
        let refused = take_words(&["--stack", &twice, "--pcap", "b.pcap"]).unwrap_err();
        assert!(refused.ends_with("give one of them"), "{refused}");
    }

    #[test]
    fn typing_errors_get_an_answer() {
        let check = |words: &[&str], expected: &str| {
            let refused = take_words(words).unwrap_err();
            assert!(refused.starts_with(expected), "{refused}");
        };
        check(
            &["--stack"],
            "\"--stack\" needs a value, as in \"--stack tap:ms0",
        );
        check(&["--stack="], "\"--stack\" needs a value");
        check(
            &["--stack", STACK, "--stack", STACK],
            "\"--stack\" stands twice",
        );
        check(&["--stack", "ms0"], "--stack: \"ms0\" is no device");
        check(
            &["--stack", &format!("{STACK},mtuu=9000")],
            "--stack: \"mtuu\" is no option of a stack, did you mean \"mtu\"?\n",
        );
    }
}

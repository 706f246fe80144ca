//! Tempesta FW's configuration on the command line: `serve --tempesta FILE`, and the verbs of its service script.

use crate::command::{self, Beside, Form};
use crate::help;
use crate::stack::{self, Taken};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

/// The file that the script reads where `TFW_CFG_PATH` names none: that of Tempesta FW's packages.
const FILE_DEFAULT: &str = "/etc/tempesta/tempesta_fw.conf";

/// What the script is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Help,
    Start,
    Stop,
    Restart,
    Reload,
    /// `--load`, `--unload`
    Module,
}

/// A command line after `millstream tempesta`.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    verb: Verb,
    /// The interface whose frames are taken, of those that `-d` names.
    interface: Option<String>,
}

/// Replaces `--tempesta FILE` by `-c FILE`; says whether it was there. The error is a message.
pub(crate) fn take(arguments: Vec<Vec<u8>>) -> Result<(bool, Vec<Vec<u8>>), String> {
    const OPTION: &[u8] = b"--tempesta";
    let mut rest = Vec::new();
    let mut found = false;
    let mut arguments = arguments.into_iter();
    while let Some(argument) = arguments.next() {
        let value = match argument.strip_prefix(OPTION) {
            Some([]) => arguments.next().unwrap_or_default(),
            Some([b'=', value @ ..]) => value.to_vec(),
            _ => {
                rest.push(argument);
                continue;
            }
        };
        if value.is_empty() {
            return Err(String::from("\"--tempesta\" needs a value, a file"));
        }
        if std::mem::replace(&mut found, true) {
            return Err(String::from("\"--tempesta\" stands twice"));
        }
        rest.push(b"-c".to_vec());
        rest.push(value);
    }
    Ok((found, rest))
}

/// Carries out the arguments after `millstream tempesta`.
pub(crate) fn run(arguments: &[Vec<u8>]) -> ExitCode {
    let devices = std::env::var("TFW_DEV").unwrap_or_default();
    let parsed = parse(arguments, &devices).and_then(|parsed| {
        let stack = stack_of(&parsed)?;
        Ok((parsed, stack))
    });
    let (parsed, taken) = match parsed {
        Ok(parsed) => parsed,
        Err(message) => {
            let text = format!(
                "millstream tempesta: {message}\n\"millstream tempesta --help\" lists all verbs.\n"
            );
            help::complain(&text);
            return ExitCode::FAILURE;
        }
    };
    let order: &[&[u8]] = match parsed.verb {
        Verb::Help => {
            help::print(HELP);
            return ExitCode::SUCCESS;
        }
        Verb::Module => {
            help::print("There is no kernel module: --start and --stop are all it takes.\n");
            return ExitCode::SUCCESS;
        }
        Verb::Start | Verb::Restart => &[],
        Verb::Stop => &[b"-s", b"stop"],
        Verb::Reload => &[b"-s", b"reload"],
    };
    let file = std::env::var_os("TFW_CFG_PATH").filter(|file| !file.is_empty());
    let file = file.map_or_else(
        || FILE_DEFAULT.as_bytes().to_vec(),
        |file| file.as_bytes().to_vec(),
    );
    let mut words = vec![b"-c".to_vec(), file];
    words.extend(order.iter().map(|word| word.to_vec()));
    let beside = Beside {
        stack: taken.stack,
        polling: taken.polling,
        is_tempesta: true,
        restarts: parsed.verb == Verb::Restart,
    };
    command::run(Form::Serve, &words, beside)
}

/// The stack on the interface, for verbs that serve.
fn stack_of(arguments: &Arguments) -> Result<Taken, String> {
    let serves = matches!(arguments.verb, Verb::Start | Verb::Restart);
    let interface = arguments.interface.as_ref().filter(|_| serves);
    let words = interface.map(|name| [b"--stack".to_vec(), format!("af_xdp:{name}").into_bytes()]);
    stack::take(words.as_ref().map_or(&[], |words| words.as_slice()))
}

/// Reads a command line; `devices` are those of the environment, which `-d` replaces.
fn parse(arguments: &[Vec<u8>], devices: &str) -> Result<Arguments, String> {
    let mut verb = None;
    let mut devices = devices.to_owned();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let found = match word.as_slice() {
            b"--help" => Verb::Help,
            b"--start" => Verb::Start,
            b"--stop" => Verb::Stop,
            b"--restart" => Verb::Restart,
            b"--reload" => Verb::Reload,
            b"--load" | b"--unload" => Verb::Module,
            // The log has times always.
            b"--output-time" => continue,
            b"-d" => {
                let value = words.next().map(|word| String::from_utf8_lossy(word));
                let value = value.filter(|value| !value.trim().is_empty());
                devices = match value {
                    Some(value) => value.into_owned(),
                    None => return Err(String::from("\"-d\" needs a value, devices")),
                };
                continue;
            }
            _ => {
                let word = String::from_utf8_lossy(word);
                return Err(format!("unknown verb \"{word}\""));
            }
        };
        if verb.replace(found).is_some_and(|known| known != found) {
            return Err(String::from("more than one verb"));
        }
    }
    // The loopback interface is the kernel's in any case.
    let mut outer = devices.split_whitespace().filter(|name| *name != "lo");
    let interface = outer.next().map(str::to_owned);
    if let (Some(first), Some(second)) = (&interface, outer.next()) {
        return Err(format!(
            "\"-d\" names {first} and {second}: the stack of our own takes one interface"
        ));
    }
    Ok(Arguments {
        verb: verb.unwrap_or(Verb::Help),
        interface,
    })
}

const HELP: &str = "\
Usage: millstream tempesta VERB [-d DEVICES]

The verbs of Tempesta FW's service script. The configuration is /etc/tempesta/tempesta_fw.conf, or what TFW_CFG_PATH names.

  --start        serve, in the background
  --stop         end
  --restart      end, wait for it, and serve
  --reload       take the configuration anew; no connection is dropped
  --load, --unload
                 nothing: there is no kernel module
  --output-time  nothing: the log has times
  --help         this

  -d DEVICES     for --start and --restart: serve on a TCP/IP stack of our own over AF_XDP on the interface (also by
                 TFW_DEV). lo among them, or no device at all, is the kernel's sockets, as without -d.

\"millstream serve --tempesta FILE\" takes all options of serve instead; -t checks the file.
";

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        let words = line.split(' ').filter(|word| !word.is_empty());
        words.map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn the_option_of_serve_is_a_configuration_file() {
        let check = |line: &str, expected: Result<(bool, &str), &str>| {
            let taken = take(words(line)).map(|(found, rest)| (found, rest.join(&b' ')));
            let taken = taken.map(|(found, rest)| (found, String::from_utf8(rest).unwrap()));
            let expected = expected.map(|(found, rest)| (found, rest.to_owned()));
            assert_eq!(taken, expected.map_err(str::to_owned), "{line}");
        };
        check("-t --tempesta a.conf", Ok((true, "-t -c a.conf")));
        check("--tempesta=a.conf -t", Ok((true, "-c a.conf -t")));
        check("-c a.conf", Ok((false, "-c a.conf")));
        check("--tempesta", Err("\"--tempesta\" needs a value, a file"));
        check(
            "--tempesta a --tempesta b",
            Err("\"--tempesta\" stands twice"),
        );
    }

    #[test]
    fn verbs_are_those_of_the_service_script() {
        let check = |line: &str, devices: &str, expected: Result<(Verb, Option<&str>), &str>| {
            let parsed = parse(&words(line), devices);
            let parsed = parsed.map(|parsed| (parsed.verb, parsed.interface));
            let expected = expected.map(|(verb, name)| (verb, name.map(str::to_owned)));
            assert_eq!(parsed, expected.map_err(str::to_owned), "{line} {devices}");
        };
        check("", "", Ok((Verb::Help, None)));
        check("--start", "", Ok((Verb::Start, None)));
        check("--start -d eth0", "", Ok((Verb::Start, Some("eth0"))));
        check("--restart", "lo eth1", Ok((Verb::Restart, Some("eth1"))));
        check("--start -d lo", "eth1", Ok((Verb::Start, None)));
        check("--output-time --stop", "", Ok((Verb::Stop, None)));
        check("--reload", "", Ok((Verb::Reload, None)));
        check("--load", "", Ok((Verb::Module, None)));
        check(
            "--start",
            "eth0 eth1",
            Err("\"-d\" names eth0 and eth1: the stack of our own takes one interface"),
        );
        check("--start --stop", "", Err("more than one verb"));
        check("--frob", "", Err("unknown verb \"--frob\""));
        check("--start -d", "", Err("\"-d\" needs a value, devices"));
    }
}

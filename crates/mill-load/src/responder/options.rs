//! The command line of `millstream load respond`.

use super::Conduct;
use super::content::Fault;
use super::law::{Law, duration};
use core::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The options of a responder.
#[derive(Clone, Debug, PartialEq)]
pub struct RespondOptions {
    pub address: SocketAddr,
    pub threads: u32,
    pub conduct: Conduct,
}

/// The request of a command line.
#[derive(Clone, Debug, PartialEq)]
pub enum RespondCommand {
    Respond(RespondOptions),
    Help,
}

/// Why a command line is refused: a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

/// The text of `--help`.
pub const HELP: &str = "\
Usage: millstream load respond [ADDRESS:PORT] [OPTIONS]

RenderedAnswers every request alike until Ctrl-C, then says what it did: a server to check a client machine with.

  ADDRESS:PORT     where to listen; PORT alone is on 127.0.0.1, port 0 is any free one (default: 127.0.0.1:8080)
  --bytes N        bytes of content (default: 6)
  --delay LAW      none, 2ms, 0.9:1ms,20ms (90 % the first), exp:2ms (its mean), stall:5s,1s (5 s after the
                   first request nothing is answered for 1 s); a delay and a stall: 2ms+stall:5s,1s
  --threads N      threads, each with a listening socket of its own (default: 1)
  --spin TIME      does not sleep in the last TIME before an answer is due (default: 0)
  --seed N         of random delays (default: 1)
  --fault FAULT    garbage, silence, close-after:BYTES, length:BYTES (a wrong Content-Length), reset
";

/// Reads the arguments after `millstream load respond`.
pub fn parse(arguments: &[Vec<u8>]) -> Result<RespondCommand, Refused> {
    let mut options = RespondOptions {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT)),
        threads: 1,
        conduct: Conduct::default(),
    };
    let mut has_address = false;
    let mut arguments = arguments
        .iter()
        .map(|argument| String::from_utf8_lossy(argument).into_owned());
    while let Some(argument) = arguments.next() {
        if matches!(argument.as_str(), "--help" | "-h") {
            return Ok(RespondCommand::Help);
        }
        if let Some(option) = argument.strip_prefix("--") {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(String::from(value))),
                None => (option, None),
            };
            if !OPTIONS.contains(&name) {
                let sentence = format!(
                    "unknown option \"{argument}\"; \"millstream load respond --help\" lists all"
                );
                return Err(Refused(sentence));
            }
            let value = value.or_else(|| arguments.next());
            let value = value.ok_or_else(|| Refused(format!("\"--{name}\" needs a value")))?;
            set(&mut options, name, &value).map_err(Refused)?;
        } else if has_address {
            let sentence = format!("there is one address to listen at, \"{argument}\" is a second");
            return Err(Refused(sentence));
        } else {
            options.address = address(&argument).map_err(Refused)?;
            has_address = true;
        }
    }
    Ok(RespondCommand::Respond(options))
}

fn set(options: &mut RespondOptions, name: &str, value: &str) -> Result<(), String> {
    let number = |most: u64| {
        let number: Option<u64> = value.parse().ok();
        number.filter(|number| *number <= most).ok_or_else(|| {
            format!("\"--{name}\" takes a whole number up to {most}, not \"{value}\"")
        })
    };
    let conduct = &mut options.conduct;
    match name {
        "bytes" => conduct.content_bytes = usize::try_from(number(CONTENT_BYTES_MAX)?).unwrap_or(0),
        "threads" => {
            options.threads = u32::try_from(number(THREADS_MAX)?).unwrap_or(1).max(1);
        }
        "seed" => conduct.seed = number(u64::MAX)?,
        "delay" => conduct.law = Law::parse(value).map_err(|error| error.to_string())?,
        "fault" => conduct.fault = Some(Fault::parse(value)?),
        _ => {
            conduct.spin = duration(value)
                .ok_or_else(|| format!("\"{value}\" is not a time, such as 50us"))?;
        }
    }
    Ok(())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    port.map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
        .map_err(|_| format!("\"{text}\" is no address to listen at, such as 127.0.0.1:8080"))
}

const OPTIONS: [&str; 6] = ["bytes", "delay", "threads", "spin", "seed", "fault"];

/// As `millstream serve`.
const DEFAULT_PORT: u16 = 8080;

/// A GiB: the content is in memory, three times.
const CONTENT_BYTES_MAX: u64 = 1 << 30;

/// No machine has CPUs for more threads.
const THREADS_MAX: u64 = 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use core::time::Duration;

    fn parse_words(line: &str) -> Result<RespondCommand, Refused> {
        let words = line.split_whitespace();
        let arguments: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
        parse(&arguments)
    }

    #[test]
    fn the_command_line_becomes_values() {
        let check = |line: &str, address: &str, threads, conduct: Conduct| {
            let options = RespondOptions {
                address: address.parse().unwrap(),
                threads,
                conduct,
            };
            assert_eq!(
                parse_words(line),
                Ok(RespondCommand::Respond(options)),
                "{line}"
            );
        };
        check("", "127.0.0.1:8080", 1, Conduct::default());
        check(":81 --threads 3", "127.0.0.1:81", 3, Conduct::default());
        check("--threads=0 0", "127.0.0.1:0", 1, Conduct::default());
        let conduct = Conduct {
            content_bytes: 100,
            law: Law::parse("2ms").unwrap(),
            fault: Some(Fault::Reset),
            spin: Duration::from_micros(50),
            seed: 7,
        };
        let line = "[::1]:9 --bytes 100 --delay=2ms --fault reset --spin 50us --seed 7";
        check(line, "[::1]:9", 1, conduct);
        assert_eq!(parse_words("--help"), Ok(RespondCommand::Help));
    }

    #[test]
    fn wrong_options_are_reported() {
        let check = |line: &str, expected: &str| {
            let Err(Refused(sentence)) = parse_words(line) else {
                panic!("{line}");
            };
            assert!(sentence.contains(expected), "{line}: {sentence}");
        };
        check("a:b", "\"a:b\" is no address");
        check("1 2", "\"2\" is a second");
        check("--byte 1", "unknown option \"--byte\"");
        check("--bytes", "\"--bytes\" needs a value");
        check("--bytes x", "not \"x\"");
        check("--threads 9999", "up to 1024");
        check("--delay soon", "\"soon\" is no delay");
        check("--fault none", "\"none\" is no fault");
        check("--spin 5", "\"5\" is not a time");
    }

    #[test]
    fn the_help_names_every_option() {
        for option in OPTIONS {
            assert!(HELP.contains(&format!("  --{option} ")), "{option}");
        }
    }
}

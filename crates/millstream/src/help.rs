//! Texts of `-h`, `-v` and `-V`, and of the bare command. Scripts parse some of them: the form is nginx's.

use crate::command::Form;
use crate::modules;
use mill_config::suggest::nearest;
use std::io::Write;
use std::process::ExitCode;

/// The nginx version that configuration language, signals and messages are compatible with.
pub(crate) const COMPATIBLE_WITH: &str = "1.22.1";

/// This binary's name and version.
pub(crate) const PRODUCT: &str = concat!("millstream/", env!("CARGO_PKG_VERSION"));

/// First arguments that show the help on purpose.
pub(crate) const WORDS: &[&[u8]] = &[b"help", b"--help", b"-h", b"-?"];

/// What the first argument may be.
const COMMANDS: &[&str] = &[
    "serve",
    "tempesta",
    "run",
    "stackdump",
    "wrk",
    "wrk2",
    "ab",
    "h2load",
    "load",
    "lab",
    "status",
    "help",
];

/// The text after `nginx version: `. Scripts take the number after `nginx/`, as distributions write theirs:
/// `nginx/1.18.0 (Ubuntu)`; so it is the compatible version, and this product is in parentheses.
pub(crate) fn version_line(form: Form) -> String {
    match form {
        Form::Nginx => format!("nginx version: nginx/{COMPATIBLE_WITH} ({PRODUCT})\n"),
        Form::Serve => {
            format!("millstream version: {PRODUCT} (nginx/{COMPATIBLE_WITH} compatible)\n")
        }
    }
}

/// The usage of nginx's options, laid out as nginx does.
pub(crate) fn usage(form: Form) -> String {
    let (name, conf) = match form {
        Form::Nginx => ("nginx", String::from("/etc/nginx/nginx.conf")),
        Form::Serve => ("millstream serve", String::from("/etc/nginx/nginx.conf")),
    };
    let indent = " ".repeat("Usage: ".len() + name.len());
    let mut text = format!(
        "Usage: {name} [-?hvVtTq] [-s signal] [-p prefix]\n\
         {indent} [-e filename] [-c filename] [-g directives]\n"
    );
    if form == Form::Serve {
        text.push_str(SERVE_DIRECTORY_USAGE);
    }
    text.push_str(&format!(
        "\n\
         Options:\n\
         \x20 -?,-h         : this help\n\
         \x20 -v            : show version and exit\n\
         \x20 -V            : show version and configure options then exit\n\
         \x20 -t            : test configuration and exit\n\
         \x20 -T            : test configuration, dump it and exit\n\
         \x20 -q            : suppress non-error messages during configuration testing\n\
         \x20 -s signal     : send signal to a master process: stop, quit, reopen, reload\n\
         \x20 -p prefix     : set prefix path (default: /usr/share/nginx/)\n\
         \x20 -e filename   : set error log file (default: stderr)\n\
         \x20 -c filename   : set configuration file (default: {conf})\n\
         \x20 -g directives : set global directives out of configuration file\n\
         \n"
    ));
    text
}

/// The lines of `-V` after the version.
pub(crate) fn configure() -> String {
    let modules = modules::configure_arguments();
    format!("configure arguments: {PATHS} {modules}\n")
}

/// `millstream` alone.
pub(crate) fn show() -> ExitCode {
    print(OVERVIEW);
    ExitCode::SUCCESS
}

/// `millstream --version`.
pub(crate) fn show_version() -> ExitCode {
    print(&format!("{PRODUCT} (nginx/{COMPATIBLE_WITH} compatible)\n"));
    ExitCode::SUCCESS
}

/// `millstream -V`: as nginx's, on standard error.
pub(crate) fn show_configure() -> ExitCode {
    complain(&format!("{}{}", version_line(Form::Serve), configure()));
    ExitCode::SUCCESS
}

/// The message for an unknown first argument.
pub(crate) fn unknown(argument: &[u8]) -> ExitCode {
    let argument = String::from_utf8_lossy(argument);
    let mut text = format!("millstream: unknown command \"{argument}\"");
    if let Some(known) = nearest(argument.as_bytes(), COMMANDS.iter().copied()) {
        text.push_str(&format!(", did you mean \"{known}\"?"));
    }
    text.push_str("\n\"millstream help\" lists all commands.\n");
    complain(&text);
    ExitCode::FAILURE
}

/// Writes to standard output; errors are ignored.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Writes to standard error.
pub(crate) fn complain(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

const OVERVIEW: &str = "\
Millstream: an HTTP server that takes nginx.conf as it is, load generators, and a lab that measures.

  millstream serve [DIRECTORY] [--port N]   serve a directory to this machine, without any configuration
  millstream serve --listen '*'             the same to other machines
  millstream serve -c FILE                  serve what an nginx.conf says
  millstream serve --tempesta FILE          serve what a configuration of Tempesta FW says
  millstream tempesta --start               the same by the verbs of its service script; --help lists them
  millstream serve … --stack tap:ms0,address=10.77.0.2/24,host=10.77.0.1/24
                                            the same on a TCP/IP stack of our own; serve --help lists its options
  millstream serve -h                       all options, which are nginx's
  nginx …                                   the same through a link of that name to this binary

  millstream run --stack af_xdp:eth0 PROGRAM …  another program, unchanged, on that stack; run --help lists its options
  millstream stackdump [stacks|clusters|netstat|stats|opts|lots]   programs that run so, as onload_stackdump shows them
  onload …, onload_stackdump …              the same in Onload's words, through links of these names to this binary

  millstream wrk [-t 2] [-c 10] [-d 10s] URL   load as wrk makes it, with its options, scripts and report
  millstream wrk2 -R RATE URL                  at a constant rate, as wrk2
  millstream ab [-n 1] [-c 1] URL              as ab
  millstream h2load [-n 1] [-c 1] [-m 1] URL   as h2load: HTTP/2, several requests at once on each connection
  wrk …, wrk2 …, ab …, h2load …                the same through links of these names to this binary

  millstream load [OPTIONS] URL                open or closed loop, split latencies, a verdict; --help lists all
  millstream load respond [ADDRESS:PORT]       a server with known delays, to check a client machine with

  millstream lab list                          experiments that come with it
  millstream lab run RECIPE                    topology, tuning, load, monitors, and a report with a verdict

  millstream status [PID|NAME]                 a running server: its workers, its stack, hanging workers; and programs of millstream run

  millstream --version, millstream -V          the version; with what nginx would have been built to do the same
";

const SERVE_DIRECTORY_USAGE: &str = "       millstream serve [DIRECTORY] [--port N] [--listen ADDRESS]... [--dot-files]
             serve a directory without any configuration, in the foreground (default: . and 8080, to this machine)
             --listen ADDRESS[:PORT]  an address to serve at instead; * is all of them, for other machines too
             --dot-files              also what is called .NAME, which is else not there (404); no listing shows it
             symbolic links are followed, wherever they lead
       millstream serve --tempesta FILE [OPTIONS]
             serve what a configuration of Tempesta FW says; -c takes such a file as well where its first words show it
       millstream serve … --stack tap:NAME,address=ADDRESS/LEN,host=ADDRESS/LEN[,…] [--pcap FILE]
             the same on a TCP/IP stack of our own as well; millstream serve --help lists its options
";

/// The default paths, those of Debian's nginx.
const PATHS: &str = "--prefix=/usr/share/nginx --conf-path=/etc/nginx/nginx.conf \
    --http-log-path=/var/log/nginx/access.log --error-log-path=stderr \
    --lock-path=/var/lock/nginx.lock --pid-path=/run/nginx.pid \
    --modules-path=/usr/lib/nginx/modules --http-client-body-temp-path=/var/lib/nginx/body";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_find_the_version_and_the_arguments() {
        let usage = usage(Form::Nginx);
        let line = usage
            .lines()
            .find(|line| line.contains("-c filename   :"))
            .unwrap();
        let default = line
            .split("(default: ")
            .nth(1)
            .and_then(|rest| rest.split(')').next());
        assert_eq!(default, Some("/etc/nginx/nginx.conf"));
        assert!(usage.contains("  -s signal "));
        assert!(
            usage.starts_with("Usage: nginx [-?hvVtTq] [-s signal] [-p prefix]\n             [-e")
        );
        assert!(version_line(Form::Nginx).starts_with("nginx version: nginx/1.22.1 ("));
        assert!(configure().starts_with("configure arguments: --prefix=/usr/share/nginx "));
    }
}

//! From nginx's options to an action.

use crate::help;
use crate::options::{self, Options, Order};
use mill_config::load::{Options as LoadOptions, Paths};
use mill_config::suggest::nearest;
use mill_device::specification::Specification;
use mill_server_host::configuration::Texts;
use mill_server_host::launch::{self, EarlyLog, Launch, Task};
use mill_server_host::upgrade::Invocation;
use mill_stack::polling::Polling;
use mill_sys::account;
use mill_sys::signal::Signal;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::ExitCode;

/// The name or command by which the binary was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Through a link of that name: with all of nginx's conventions.
    Nginx,
    /// `millstream serve`.
    Serve,
}

/// `nginx …`.
pub(crate) fn nginx(arguments: &[Vec<u8>]) -> ExitCode {
    run(Form::Nginx, arguments, Beside::default())
}

/// What a command line says beside nginx's options.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) stack: Option<Specification>,
    pub(crate) polling: Option<Polling>,
    /// The configuration is in Tempesta FW's language.
    pub(crate) is_tempesta: bool,
    /// The server that runs is replaced.
    pub(crate) restarts: bool,
}

/// Carries out nginx's options, also on a stack of our own.
pub(crate) fn run(form: Form, arguments: &[Vec<u8>], beside: Beside) -> ExitCode {
    let options = match options::parse(arguments) {
        Ok(options) => options,
        Err(refused) => return refuse(form, &refused),
    };
    if options.show_version {
        let mut text = help::version_line(form);
        if options.show_help {
            text.push_str(&help::usage(form));
        }
        if options.show_configure {
            text.push_str(&help::configure());
        }
        help::complain(&text);
        if !options.test {
            return ExitCode::SUCCESS;
        }
    }
    let mut launch = launch_of(form, &options);
    launch.stack = beside.stack;
    launch.polling = beside.polling;
    launch.options.is_tempesta = beside.is_tempesta;
    let task = match task_of(&options) {
        Task::Serve if beside.restarts => Task::Restart,
        task => task,
    };
    launch::run(&launch, &task)
}

/// A launch by options alone; no configuration is read.
pub(crate) fn launch_of(form: Form, options: &Options) -> Launch {
    let prefix = options.prefix.as_deref().map_or_else(
        || Paths::default().prefix,
        |prefix| {
            let mut prefix = absolute(prefix);
            if !prefix.ends_with(b"/") {
                prefix.push(b'/');
            }
            prefix
        },
    );
    let conf = match (&options.conf, form) {
        (None, _) => Paths::default().conf,
        // Without a prefix: relative to the working directory.
        (Some(conf), Form::Serve) if options.prefix.is_none() => absolute(conf),
        // As nginx: relative to the prefix.
        (Some(conf), _) => conf.clone(),
    };
    let named_log = options.error_log.as_deref().filter(|log| *log != STDERR);
    let early_log = match (named_log, form) {
        (Some(log), _) => EarlyLog::File(join(&prefix, log)),
        (None, Form::Nginx) => EarlyLog::Stderr,
        (None, Form::Serve) => EarlyLog::Terminal,
    };
    let pid = match form {
        Form::Nginx => Paths::default().pid,
        Form::Serve => b"/run/millstream.pid".to_vec(),
    };
    let error_log = named_log.unwrap_or(STDERR).to_vec();
    Launch {
        program: match form {
            Form::Nginx => "nginx",
            Form::Serve => "millstream",
        },
        version: String::from(help::PRODUCT),
        options: LoadOptions {
            paths: Paths {
                prefix,
                conf,
                pid,
                error_log,
                ..Paths::default()
            },
            globals: options.globals.clone().unwrap_or_default(),
            hostname: hostname(),
            is_privileged: account::is_super_user(),
            is_tempesta: false,
        },
        texts: Texts::Files,
        early_log,
        invocation: Invocation::own(),
        has_pid_file: true,
        by_options: false,
        announcement: None,
        stack: None,
        polling: None,
    }
}

fn task_of(options: &Options) -> Task {
    // As nginx: a test takes precedence over a signal.
    if options.test {
        return Task::Test {
            dump: options.dump,
            quiet: options.quiet,
        };
    }
    match options.signal {
        None => Task::Serve,
        Some(Order::Stop) => Task::Send(Signal::Terminate),
        Some(Order::Quit) => Task::Send(Signal::Quit),
        Some(Order::Reopen) => Task::Send(Signal::User1),
        Some(Order::Reload) => Task::Send(Signal::Hangup),
    }
}

/// nginx's error line; if the binary was called by its own name, also a suggestion.
fn refuse(form: Form, refused: &options::Refused) -> ExitCode {
    let text = match form {
        Form::Nginx => format!("nginx: {}\n", refused.message),
        Form::Serve => {
            let mut text = format!("millstream: {}", refused.message);
            let unknown = refused.unknown.as_deref();
            let signal = unknown.and_then(|option| option.strip_prefix("-s "));
            let orders = Order::ALL.map(|(name, _)| name);
            if let Some(known) =
                signal.and_then(|signal| nearest(signal.as_bytes(), orders.into_iter()))
            {
                text.push_str(&format!(", did you mean \"-s {known}\"?"));
            }
            text.push_str("\n\"millstream serve -h\" lists all options.\n");
            text
        }
    };
    help::complain(&text);
    ExitCode::FAILURE
}

/// A path relative to the working directory, made absolute.
pub(crate) fn absolute(path: &[u8]) -> Vec<u8> {
    let path = Path::new(OsStr::from_bytes(path));
    // It only fails without a working directory; then the relative path is used.
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.as_os_str().as_bytes().to_vec()
}

fn join(prefix: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        path.to_vec()
    } else {
        [prefix, path].concat()
    }
}

/// The name of this machine in lower case, as nginx compares it.
fn hostname() -> Vec<u8> {
    let name = std::fs::read("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim_ascii_end().to_ascii_lowercase()
}

/// The terminal, not a file.
const STDERR: &[u8] = b"stderr";

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(form: Form, words: &[&str]) -> Launch {
        let arguments: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
        launch_of(form, &options::parse(&arguments).unwrap())
    }

    fn check_conf(form: Form, words: &[&str], expected: &str) {
        let file = launch(form, words).options.conf_file();
        assert_eq!(file.display(), expected, "{words:?}");
    }

    #[test]
    fn the_configuration_file_is_where_nginx_looks_for_it() {
        check_conf(Form::Nginx, &[], "/etc/nginx/nginx.conf");
        check_conf(Form::Nginx, &["-c", "a.conf"], "/usr/share/nginx/a.conf");
        check_conf(Form::Nginx, &["-c", "a.conf", "-p", "/b"], "/b/a.conf");
        check_conf(Form::Nginx, &["-c", "/c/a.conf"], "/c/a.conf");
        let here = std::env::current_dir().unwrap();
        let here = here.join("a.conf");
        check_conf(Form::Serve, &["-c", "a.conf"], here.to_str().unwrap());
    }

    #[test]
    fn the_first_messages_go_where_nginx_writes_them() {
        let early = |words: &[&str]| launch(Form::Nginx, words).early_log;
        assert_eq!(early(&[]), EarlyLog::Stderr);
        assert_eq!(early(&["-e", "stderr"]), EarlyLog::Stderr);
        assert_eq!(early(&["-e", "/x"]), EarlyLog::File(b"/x".to_vec()));
        assert_eq!(
            early(&["-e", "x", "-p", "/b/"]),
            EarlyLog::File(b"/b/x".to_vec())
        );
        assert_eq!(launch(Form::Serve, &[]).early_log, EarlyLog::Terminal);
    }
}

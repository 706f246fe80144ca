//! From a command line to a running server, a test of the configuration, or a signal to a running one.

use crate::channel::Channel;
use crate::configuration::Texts;
use crate::cycle::{self, Cycle, NotOpened};
use crate::daemon::{self, Side};
use crate::inherited_device;
use crate::listening::{Listening, Opening};
use crate::log_files;
use crate::pid_file::{Content, PidFile};
use crate::privileges::Identity;
use crate::process_log::{ProcessLog, describe, redirect_stderr};
use crate::single;
use crate::stack_choice;
use crate::status::answer::Identity as StatusIdentity;
use crate::status::control_socket::ControlSocket;
use crate::status::socket_path;
use crate::supervisor::Supervisor;
use crate::threads;
use crate::upgrade::{self, Invocation};
use mill_config::config::LogLevel;
use mill_config::load::Options;
use mill_device::attachment::Attachment;
use mill_device::specification::Specification;
use mill_stack::polling::Polling;
use mill_sys::clock;
use mill_sys::descriptor;
use mill_sys::process::Pid;
use mill_sys::rlimit::Resource;
use mill_sys::signal::{Signal, SignalDescriptor};
use mill_sys::title::Title;
use mill_tls::tickets::TicketSecret;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;
use std::time::Duration;

/// What the command line and the name of the program specify.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The prefix of messages: `nginx` or `millstream`.
    pub program: &'static str,
    /// Name and version, for the log.
    pub version: String,
    pub options: Options,
    pub texts: Texts,
    pub early_log: EarlyLog,
    pub invocation: Invocation,
    /// False when no pid file is written.
    pub has_pid_file: bool,
    /// Addresses come from options of the command line, not from a configuration file.
    pub by_options: bool,
    /// Written to standard output once it serves.
    pub announcement: Option<String>,
    /// The network stack of our own to serve on, beside kernel sockets. Without one the configuration may name it.
    pub stack: Option<Specification>,
    /// The default of the stack's polling mode, which the configuration may override.
    pub polling: Option<Polling>,
}

/// Where messages go until the configuration names a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EarlyLog {
    /// To the terminal, as `PROGRAM: [LEVEL] …`.
    Terminal,
    /// To the terminal, as lines of a log.
    Stderr,
    /// To a file, and to the terminal as `PROGRAM: [LEVEL] …`.
    File(Vec<u8>),
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Serve,
    /// `-t`, `-T`.
    Test {
        dump: bool,
        quiet: bool,
    },
    /// `-s`.
    Send(Signal),
    /// Ends the server that runs, if there is one, waits for its end, and serves.
    Restart,
}

/// Carries out the task. Returns in the calling process; in forked ones too, when they end.
pub fn run(launch: &Launch, task: &Task) -> ExitCode {
    // Before anything is opened: the numbers must still be those that the old binary meant.
    let inherited = upgrade::inherited();
    let upgrade_channel = upgrade::inherited_channel();
    let secret = upgrade::inherited_secret();
    // Optional: without it `ps` shows the original command line.
    let title = Title::claim().ok();
    let log = early_log(launch);
    let result = match task {
        Task::Serve => serve(launch, (inherited, upgrade_channel, secret), title, log),
        Task::Test { dump, quiet } => test(launch, *dump, *quiet, &log),
        Task::Send(signal) => send(launch, *signal, &log).map(|_| ExitCode::SUCCESS),
        Task::Restart => {
            // Without one that runs the log says so, and this is a start.
            if let Ok(pid) = send(launch, Signal::Terminate, &log) {
                wait_for_end(pid);
            }
            serve(launch, (inherited, upgrade_channel, secret), title, log)
        }
    };
    result.unwrap_or(ExitCode::FAILURE)
}

/// The reason is in the log.
struct Failed;

impl From<NotOpened> for Failed {
    fn from(_: NotOpened) -> Self {
        Self
    }
}

fn early_log(launch: &Launch) -> ProcessLog {
    let log = ProcessLog::to_terminal(launch.program);
    match &launch.early_log {
        EarlyLog::Terminal => log,
        EarlyLog::Stderr => log.with_stderr(),
        EarlyLog::File(path) => match log_files::open(path) {
            Ok(file) => log.with_file(file),
            Err(error) => {
                let (path, why) = (String::from_utf8_lossy(path), describe(&error));
                let what = format!("could not open error log file: open() \"{path}\" failed {why}");
                log.write(LogLevel::Alert, &what);
                log.with_stderr()
            }
        },
    }
}

/// Longest wait for the end of the server that is replaced; then its addresses are tried all the same.
const END_WAIT: Duration = Duration::from_secs(30);

fn wait_for_end(pid: Pid) {
    // Without a descriptor it has ended already.
    if let Ok(process) = pid.descriptor() {
        let _ = descriptor::wait_readable(&[process.as_fd()], Some(END_WAIT));
    }
}

/// `-s`: finds the master by its pid file.
fn send(launch: &Launch, signal: Signal, log: &ProcessLog) -> Result<Pid, Failed> {
    // Notices were shown when the configuration was tested; a signal does not repeat them.
    let (config, _) = cycle::read(launch, LogLevel::Warn, log)?;
    log.write(LogLevel::Notice, "signal process started");
    let pid_file = PidFile::new(&config.main.pid);
    let path = pid_file.path().display();
    let fail = |level, what: String| {
        log.write(level, &what);
        Failed
    };
    let content = pid_file.read().map_err(|error| {
        fail(
            LogLevel::Error,
            format!("open() \"{path}\" failed {}", describe(&error)),
        )
    })?;
    let pid = match content {
        Content::Process(pid) => pid,
        Content::Invalid(text) => {
            let what = format!("invalid PID number \"{text}\" in \"{path}\"");
            return Err(fail(LogLevel::Error, what));
        }
    };
    pid.kill(signal.number()).map_err(|error| {
        let what = format!(
            "kill({pid}, {}) failed {}",
            signal.number(),
            describe(&error)
        );
        fail(LogLevel::Alert, what)
    })?;
    Ok(pid)
}

/// `-t`, `-T`: whether it would start.
fn test(launch: &Launch, dump: bool, quiet: bool, log: &ProcessLog) -> Result<ExitCode, Failed> {
    let name = launch.options.conf_file();
    let name = name.display();
    let say = |what: &str| {
        let line = format!("{}: {what}\n", launch.program);
        let _ = std::io::stderr().write_all(line.as_bytes());
    };
    let level = if quiet {
        LogLevel::Warn
    } else {
        LogLevel::Notice
    };
    let tested = test_steps(launch, level, log, &|| {
        if !quiet {
            say(&format!("the configuration file {name} syntax is ok"));
        }
    });
    let Ok(bundle) = tested else {
        say(&format!("configuration file {name} test failed"));
        return Err(Failed);
    };
    if !quiet {
        say(&format!("configuration file {name} test is successful"));
    }
    if dump {
        let mut out = std::io::stdout().lock();
        for (path, content) in &bundle.files {
            let header = format!("# configuration file {}:\n", path.display());
            let written = out
                .write_all(header.as_bytes())
                .and_then(|()| out.write_all(content))
                .and_then(|()| out.write_all(b"\n"));
            written.map_err(|_| Failed)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn test_steps(
    launch: &Launch,
    level: LogLevel,
    log: &ProcessLog,
    syntax_is_ok: &dyn Fn(),
) -> Result<mill_config::Bundle, Failed> {
    let launch = &stack_choice::settle(launch, log)?;
    let (config, bundle) = cycle::read(launch, level, log)?;
    Identity::resolve(&config.main).map_err(|error| {
        log.write_diagnostic(&error);
        Failed
    })?;
    syntax_is_ok();
    if launch.has_pid_file {
        let pid_file = PidFile::new(&config.main.pid);
        pid_file.test().map_err(|error| {
            let (path, why) = (pid_file.path().display(), describe(&error));
            log.write(LogLevel::Emerg, &format!("open() \"{path}\" failed {why}"));
            Failed
        })?;
    }
    cycle::open_logs(&config, log)?;
    let opening = Opening {
        threads: threads::thread_count(&config.main),
        test: true,
        attempts: 1,
    };
    let sockets = Listening::default().reopen(&cycle::wanted(launch, &config), opening, log);
    sockets.map_err(|_| Failed)?;
    Ok(bundle)
}

/// Makes the stack's device, or tries it, where the process that serves opens it for itself.
fn make_stack(stack: &Specification) -> Result<(Attachment, Vec<String>), String> {
    let made = Attachment::make(stack).map_err(|error| error.to_string());
    let (mut attachment, mut notices) = made?;
    let rehearsed = attachment.rehearse().map_err(|error| error.to_string());
    notices.extend(rehearsed?);
    Ok((attachment, notices))
}

type Inherited = Option<(String, Result<Vec<OwnedFd>, String>)>;

fn serve(
    launch: &Launch,
    (inherited, upgrade_channel, secret): (Inherited, Option<OwnedFd>, Option<TicketSecret>),
    title: Option<Title>,
    log: ProcessLog,
) -> Result<ExitCode, Failed> {
    let upgraded = inherited.is_some();
    let sockets = take_over(inherited, &log)?;
    let launch = &stack_choice::settle(launch, &log)?;
    // Before the sockets: some may be bound to an address that only exists with the stack's device.
    let upgrade_channel = upgrade_channel.map(Channel::of).transpose();
    let upgrade_channel = upgrade_channel.map_err(|error| {
        let what = format!(
            "setsockopt() of the old binary's channel failed {}",
            describe(&error)
        );
        log.write(LogLevel::Emerg, &what);
        Failed
    })?;
    let stack = launch.stack.as_ref().map(|stack| match &upgrade_channel {
        Some(upgrade_channel) => inherited_device::ask(upgrade_channel, stack),
        None => make_stack(stack),
    });
    let stack = stack.transpose().map_err(|why| {
        log.write(LogLevel::Emerg, &why);
        Failed
    })?;
    let (stack, notices) = stack.map_or((None, Vec::new()), |(stack, notices)| {
        (Some(stack), notices)
    });
    for what in &notices {
        log.write(LogLevel::Warn, what);
    }
    let mut cycle = Cycle::open(launch, 1, &sockets, &log).inspect_err(|error| {
        if *error == NotOpened::Sockets && launch.has_pid_file {
            hint_at_other_instance(launch, &log);
        }
    })?;
    cycle.ticket_secret = secret.or_else(TicketSecret::random);
    drop(sockets);
    // Again, for the log file; at first they went to the terminal only.
    for what in &notices {
        cycle.log.write_to_files(LogLevel::Warn, what);
    }
    log_banner(launch, &cycle.log);
    let main = &cycle.config.main;
    let goes_to_background = main.daemon && !upgraded;
    let (daemonized, has_master) = (main.daemon || upgraded, main.master_process);
    let parent = if goes_to_background {
        match daemon::detach() {
            Ok(Side::Foreground(code)) => return Ok(code),
            Ok(Side::Background(parent)) => Some(parent),
            Err(error) => {
                cycle.log.write(
                    LogLevel::Emerg,
                    &format!("fork() failed {}", describe(&error)),
                );
                return Err(Failed);
            }
        }
    } else {
        None
    };
    let signals = SignalDescriptor::open().map_err(|error| {
        cycle.log.write(
            LogLevel::Emerg,
            &format!("signalfd() failed {}", describe(&error)),
        );
        Failed
    })?;
    if let Some(pid_file) = &cycle.pid_file {
        cycle::write_pid_file(pid_file, &cycle.log)?;
    }
    redirect_stderr(&cycle.log);
    let identity = StatusIdentity {
        role: if has_master { "master" } else { "single" },
        started_at: clock::monotonic(),
        fallbacks: notices,
    };
    let control_socket = open_control_socket(&cycle.log);
    cycle.log.leave_terminal();
    let started = || {
        if let Some(announcement) = &launch.announcement {
            // Standard output may be closed.
            let _ = std::io::stdout().write_all(announcement.as_bytes());
        }
        if let Some(parent) = parent {
            parent.release();
        }
    };
    if has_master {
        let old_binary = upgraded.then(Pid::parent);
        let supervisor = Supervisor::new(
            launch,
            cycle,
            stack,
            (signals, control_socket, identity),
            daemonized,
            (old_binary, upgrade_channel),
            title,
        );
        Ok(supervisor.run(started))
    } else {
        let started = || {
            started();
            if let Some(channel) = &upgrade_channel {
                inherited_device::tell_serving(channel);
            }
        };
        Ok(single::run(
            launch,
            cycle,
            stack,
            (signals, control_socket),
            &identity,
            started,
        ))
    }
}

/// Opens the control socket, which `millstream status` asks. The server runs without it, too.
fn open_control_socket(log: &ProcessLog) -> Option<ControlSocket> {
    let control_socket = ControlSocket::open();
    if let Err(error) = &control_socket {
        let folder = socket_path::own_folder();
        let (folder, why) = (folder.display(), describe(error));
        let what = format!("\"millstream status\" will get no answer: no socket in {folder} {why}");
        log.write(LogLevel::Notice, &what);
    }
    control_socket.ok()
}

/// The sockets that an old binary left open for this one.
fn take_over(inherited: Inherited, log: &ProcessLog) -> Result<Listening, Failed> {
    let Some((value, sockets)) = inherited else {
        return Ok(Listening::default());
    };
    let what = format!("using inherited sockets from \"{value}\"");
    log.write(LogLevel::Notice, &what);
    let emerg = |what: String| {
        log.write(LogLevel::Emerg, &what);
        Failed
    };
    let variable = upgrade::VARIABLE;
    let sockets = sockets.map_err(|part| {
        emerg(format!(
            "invalid socket number \"{part}\" in {variable} environment variable"
        ))
    })?;
    Listening::inherit(sockets).map_err(|error| {
        emerg(format!(
            "{variable} names a descriptor that is no listening socket {}",
            describe(&error)
        ))
    })
}

/// When a start failed and the pid file names a running process, that may be why.
fn hint_at_other_instance(launch: &Launch, log: &ProcessLog) {
    let Ok(config) = launch.texts.read(&launch.options).result else {
        return;
    };
    let pid_file = PidFile::new(&config.main.pid);
    if let Ok(Content::Process(pid)) = pid_file.read()
        && pid.kill(0).is_ok()
    {
        let path = pid_file.path().display();
        log.help(&format!(
            "{path} names process {pid}, which is running: is it serving already?"
        ));
    }
}

fn log_banner(launch: &Launch, log: &ProcessLog) {
    log.write(LogLevel::Notice, "using the \"epoll\" event method");
    log.write(LogLevel::Notice, &launch.version);
    if let Ok(release) = std::fs::read_to_string("/proc/sys/kernel/osrelease") {
        log.write(
            LogLevel::Notice,
            &format!("OS: Linux {}", release.trim_end()),
        );
    }
    if let Ok(limit) = Resource::Descriptors.limit() {
        let what = format!("getrlimit(RLIMIT_NOFILE): {}:{}", limit.soft, limit.hard);
        log.write(LogLevel::Notice, &what);
    }
}

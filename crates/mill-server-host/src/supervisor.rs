//! The master process: carries out what `Master` decides, and reports events to it.

use crate::channel::Channel;
use crate::cycle::{self, Cycle};
use crate::inherited_device;
use crate::launch::Launch;
use crate::master::{Action, Ending, Master};
use crate::message::{Order, Report};
use crate::privileges;
use crate::process_log::{describe, redirect_stderr};
use crate::status::answer::{self, Identity};
use crate::status::board::BoardFile;
use crate::status::control_socket::{ControlSocket, Question};
use crate::status::parcel;
use crate::worker_process::{self, Inheritance};
use mill_config::config::LogLevel;
use mill_device::attachment::Attachment;
use mill_sys::process::{self, Fork, Pid};
use mill_sys::signal::{Signal, SignalDescriptor};
use mill_sys::title::Title;
use mill_sys::{clock, descriptor};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// The master process.
#[derive(Debug)]
pub struct Supervisor<'a> {
    launch: &'a Launch,
    master: Master,
    cycle: Cycle,
    /// Worker processes get duplicates of it.
    stack: Option<Attachment>,
    signals: SignalDescriptor,
    /// Where clients ask for the status; the server runs without it if it can't be opened.
    control_socket: Option<ControlSocket>,
    identity: Identity,
    workers: Vec<WorkerProcess>,
    /// The channel to a new binary, until that serves.
    upgrade_channel: Option<Channel>,
    /// The process that started this one by an upgrade.
    old_binary: Option<Pid>,
    /// The channel to it, until this one serves.
    old_binary_channel: Option<Channel>,
    title: Option<Title>,
}

/// What has happened.
struct Ready {
    on_signals: bool,
    /// The new binary has sent a request.
    on_upgrade_channel: bool,
    /// Worker processes that have sent a report.
    on_workers: Vec<Pid>,
    /// Which descriptors of the control socket are readable.
    control_ready: Vec<bool>,
}

#[derive(Debug)]
struct WorkerProcess {
    pid: Pid,
    channel: Channel,
    /// The memory in which its threads publish their figures.
    board: BoardFile,
    /// Questions passed to it that it has not taken yet.
    untaken: u32,
    /// It has closed its end: there is nothing more to read.
    silent: bool,
}

impl<'a> Supervisor<'a> {
    /// A master without a worker process yet. `old_binary`: the process that started this one by an upgrade, and the channel to it if
    /// it waits until this one serves.
    pub(crate) fn new(
        launch: &'a Launch,
        cycle: Cycle,
        stack: Option<Attachment>,
        (signals, control_socket, identity): (SignalDescriptor, Option<ControlSocket>, Identity),
        daemonized: bool,
        (old_binary, old_binary_channel): (Option<Pid>, Option<Channel>),
        title: Option<Title>,
    ) -> Self {
        Self {
            launch,
            control_socket,
            identity,
            title,
            master: Master::new(daemonized),
            cycle,
            stack,
            signals,
            workers: Vec::new(),
            upgrade_channel: None,
            old_binary,
            old_binary_channel,
        }
    }

    /// Serves until a signal ends it. `started` is called once the worker process has been started.
    pub fn run(mut self, started: impl FnOnce()) -> ExitCode {
        if let Some(title) = &mut self.title {
            title.set(&master_title(self.launch));
        }
        if let Some(stack) = &mut self.stack
            && let Err(error) = stack.keep_ledgers()
        {
            let why = describe(&error);
            let what = format!(
                "there is no memory to note connections in: peers of a worker process that is killed hear of it when they send {why}"
            );
            self.log(LogLevel::Warn, &what);
        }
        self.master.on_start();
        if let Some(code) = self.act() {
            return code;
        }
        started();
        loop {
            let Ready {
                on_signals,
                on_upgrade_channel,
                on_workers,
                control_ready,
            } = match self.wait() {
                Ok(ready) => ready,
                Err(error) => {
                    self.log(
                        LogLevel::Alert,
                        &format!("poll() failed {}", describe(&error)),
                    );
                    return ExitCode::FAILURE;
                }
            };
            for pid in on_workers {
                self.on_report(pid);
            }
            if on_upgrade_channel {
                self.on_upgrade_channel();
            }
            if on_signals {
                self.on_signals();
            }
            self.on_control_socket(&control_ready);
            self.master.on_time(clock::monotonic());
            if let Some(code) = self.act() {
                return code;
            }
        }
    }

    /// Sleeps until something happens.
    fn wait(&self) -> io::Result<Ready> {
        let speaking: Vec<_> = self
            .workers
            .iter()
            .filter(|worker| !worker.silent)
            .collect();
        let mut sources: Vec<BorrowedFd<'_>> = vec![self.signals.as_fd()];
        sources.extend(speaking.iter().map(|worker| worker.channel.as_fd()));
        sources.extend(self.upgrade_channel.as_ref().map(AsFd::as_fd));
        sources.extend(
            self.control_socket
                .iter()
                .flat_map(ControlSocket::descriptors),
        );
        let wake_at = self.master.wake_at();
        let timeout = wake_at.map(|at| at.saturating_sub(clock::monotonic()));
        let ready = descriptor::wait_readable(&sources, timeout)?;
        let on_signals = ready.first() == Some(&true);
        let pids = speaking.iter().zip(ready.iter().skip(1));
        let pids = pids
            .filter(|(_, ready)| **ready)
            .map(|(worker, _)| worker.pid);
        let behind = 1 + speaking.len();
        let on_upgrade_channel = self.upgrade_channel.is_some() && ready.get(behind) == Some(&true);
        let control_ready = ready
            .iter()
            .skip(behind + usize::from(self.upgrade_channel.is_some()));
        Ok(Ready {
            on_signals,
            on_upgrade_channel,
            on_workers: pids.collect(),
            control_ready: control_ready.copied().collect(),
        })
    }

    /// The new binary asks for the device of the network stack, serves, or has ended.
    fn on_upgrade_channel(&mut self) {
        let (Some(upgrade_channel), Some(stack)) = (&self.upgrade_channel, &self.stack) else {
            return;
        };
        match inherited_device::answer(upgrade_channel, stack) {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => {
                let why = describe(&error);
                let what = format!("the network stack could not be handed to the new binary {why}");
                self.log(LogLevel::Alert, &what);
            }
        }
        self.upgrade_channel = None;
        self.master.on_binary_serves();
    }

    /// Answers the control socket's clients.
    fn on_control_socket(&mut self, ready: &[bool]) {
        let questions = self
            .control_socket
            .as_mut()
            .map(|control_socket| control_socket.questions(ready));
        for question in questions.into_iter().flatten() {
            self.answer(&question);
        }
    }

    fn answer(&mut self, question: &Question) {
        let boards = self.workers.iter().map(|worker| {
            let process = u32::try_from(worker.pid.number()).unwrap_or(0);
            (process, worker.board.read())
        });
        let boards: Vec<_> = boards.collect();
        let status = answer::status(&self.identity, self.launch, &self.cycle, &boards);
        // The client may have disconnected.
        let _ = question
            .client
            .send(parcel::STATUS, &answer::encode(&status), &[]);
        for worker in &mut self.workers {
            // A worker that does not take questions gets no more: a full socket would block this process.
            if worker.untaken < UNTAKEN_MAX
                && Order::send_question(&worker.channel, question).is_ok()
            {
                worker.untaken += 1;
            }
        }
    }

    fn on_signals(&mut self) {
        while let Ok(Some(received)) = self.signals.read() {
            let beside_old = self.old_binary == Some(Pid::parent());
            let now = clock::monotonic();
            self.master.on_signal(received, beside_old, now);
            if received.signal == Signal::Child {
                self.reap();
            }
        }
    }

    fn reap(&mut self) {
        while let Ok(Some((pid, status))) = process::reap() {
            self.workers.retain(|worker| worker.pid != pid);
            self.master
                .on_child_exit(pid, ending(status), clock::monotonic());
        }
    }

    fn on_report(&mut self, pid: Pid) {
        let Some(worker) = self.workers.iter_mut().find(|worker| worker.pid == pid) else {
            return;
        };
        match Report::receive(&worker.channel) {
            Ok(Some(Report::Ready { generation })) => {
                self.master.on_worker_ready(pid);
                if let Some(channel) = self.old_binary_channel.take() {
                    inherited_device::tell_serving(&channel);
                }
                let what = format!("configuration {generation} is in force");
                self.log(LogLevel::Notice, &what);
            }
            Ok(Some(Report::Refused { generation, why })) => {
                let what =
                    format!("worker process {pid} refused configuration {generation}: {why}");
                self.log(LogLevel::Alert, &what);
            }
            Ok(Some(Report::QuestionTaken)) => worker.untaken = worker.untaken.saturating_sub(1),
            // SIGCHLD reports its end.
            Ok(None) | Err(_) => worker.silent = true,
        }
    }

    /// Carries out all pending actions; an exit code when the process is to exit.
    fn act(&mut self) -> Option<ExitCode> {
        while let Some(action) = self.master.next_action() {
            match action {
                Action::Log(level, line) => self.log(level, &line),
                Action::StartWorker => self.start_worker(),
                Action::Reconfigure => self.reconfigure(),
                Action::ReopenLogs => self.reopen_logs(),
                Action::Quit(pid) => self.quit(pid),
                Action::Signal(pid, signal) => self.signal(pid, signal),
                Action::StartBinary => self.start_binary(),
                Action::RestorePidFile => self.restore_pid_file(),
                Action::CloseListeners => self.close_listeners(),
                Action::Exit => {
                    self.exit();
                    return Some(ExitCode::SUCCESS);
                }
            }
        }
        None
    }

    fn start_worker(&mut self) {
        let made = BoardFile::create().and_then(|board| Ok((board, Channel::pair()?)));
        let started = made.and_then(|(board, (ours, theirs))| match process::fork()? {
            Fork::Child => {
                let inheritance = Inheritance {
                    main: &self.cycle.config.main,
                    identity: self.cycle.identity.as_ref(),
                    options: &self.launch.options,
                    log: self.cycle.log.clone(),
                    stack: self.stack.as_ref(),
                    board: &board,
                    program: self.launch.program,
                    title: self.title.take(),
                };
                worker_process::run(theirs, inheritance)
            }
            Fork::Parent(pid) => Ok((pid, ours, board)),
        });
        match started {
            Ok((pid, channel, board)) => {
                self.workers.push(WorkerProcess {
                    pid,
                    channel,
                    board,
                    untaken: 0,
                    silent: false,
                });
                self.master.on_worker_started(pid);
                self.configure(pid);
            }
            Err(error) => {
                let what = format!("fork() failed {}", describe(&error));
                self.log(LogLevel::Alert, &what);
                self.master.on_worker_not_started(clock::monotonic());
            }
        }
    }

    fn reconfigure(&mut self) {
        // After an error, which is logged, the old cycle goes on.
        if let Ok(next) = self.cycle.next(self.launch) {
            redirect_stderr(&next.log);
            self.cycle = next;
            if let Some(pid) = self.master.serving() {
                self.configure(pid);
            }
        }
    }

    fn reopen_logs(&mut self) {
        let reopened = self.cycle.reopen_logs();
        redirect_stderr(&self.cycle.log);
        match reopened {
            Ok(logs) => {
                for pid in self.pids() {
                    self.tell(pid, |channel| Order::send_logs(channel, &logs));
                }
            }
            Err(error) => self.log(
                LogLevel::Alert,
                &format!("dup() failed {}", describe(&error)),
            ),
        }
    }

    /// Hands the present configuration to a worker process.
    fn configure(&mut self, pid: Pid) {
        match self.cycle.configuration() {
            Ok(configuration) => self.tell(pid, |channel| configuration.send(channel)),
            Err(error) => self.log(
                LogLevel::Alert,
                &format!("dup() failed {}", describe(&error)),
            ),
        }
    }

    fn quit(&mut self, pid: Pid) {
        self.tell(pid, Order::send_quit);
    }

    fn pids(&self) -> Vec<Pid> {
        self.workers.iter().map(|worker| worker.pid).collect()
    }

    /// Sends something to a worker process. One that does not take it is killed, and replaced.
    fn tell(&self, pid: Pid, send: impl Fn(&Channel) -> io::Result<()>) {
        let Some(worker) = self.workers.iter().find(|worker| worker.pid == pid) else {
            return;
        };
        let Err(error) = send(&worker.channel) else {
            return;
        };
        // EPIPE means that the process has just ended, which SIGCHLD reports.
        if error.kind() != io::ErrorKind::BrokenPipe {
            let what = format!(
                "sendmsg() to worker process {pid} failed {}",
                describe(&error)
            );
            self.log(LogLevel::Alert, &what);
            self.signal(pid, Signal::Kill);
        }
    }

    fn signal(&self, pid: Pid, signal: Signal) {
        if let Err(error) = pid.kill(signal.number()) {
            let what = format!(
                "kill({pid}, {}) failed {}",
                signal.number(),
                describe(&error)
            );
            self.log(LogLevel::Alert, &what);
        }
    }

    fn start_binary(&mut self) {
        let channel = match self
            .stack
            .as_ref()
            .map(inherited_device::channel)
            .transpose()
        {
            Ok(channel) => channel,
            Err(why) => return self.log(LogLevel::Crit, &why),
        };
        if let Some(pid_file) = &self.cycle.pid_file
            && let Err(error) = pid_file.set_aside()
        {
            let (from, to) = (pid_file.path().display(), pid_file.old_path());
            let (to, why) = (to.display(), describe(&error));
            let what =
                format!("rename() {from} to {to} failed before executing new binary process {why}");
            self.log(LogLevel::Alert, &what);
            return;
        }
        let environment = privileges::environment(&self.cycle.config.main.env);
        let (own, far) = channel.unzip();
        let sockets = self.cycle.listening.descriptors();
        let far = far.as_ref().map(AsFd::as_fd);
        let secret = self.cycle.ticket_secret.as_ref();
        match (self.launch.invocation).start(sockets, far, secret, environment) {
            Ok(pid) => {
                let is_to_tell = own.is_some();
                self.upgrade_channel = own;
                let now = clock::monotonic();
                self.master.on_binary_started(pid, is_to_tell, now);
            }
            Err(error) => {
                let name = self.launch.invocation.executable.display();
                let what = format!(
                    "execve() failed while executing new binary process \"{name}\" {}",
                    describe(&error)
                );
                self.log(LogLevel::Alert, &what);
                self.restore_pid_file();
            }
        }
    }

    fn restore_pid_file(&self) {
        if let Some(pid_file) = &self.cycle.pid_file
            && let Err(error) = pid_file.restore()
        {
            let (from, to) = (pid_file.old_path(), pid_file.path().display());
            let (from, why) = (from.display(), describe(&error));
            let what = format!(
                "rename() {from} back to {to} failed after the new binary process exited {why}"
            );
            self.log(LogLevel::Alert, &what);
        }
    }

    fn close_listeners(&mut self) {
        let listening = std::mem::take(&mut self.cycle.listening);
        // During an upgrade the other binary serves the same files.
        if self.is_alone() {
            listening.remove_files(None, &self.cycle.log);
        }
    }

    fn exit(&mut self) {
        if let Some(pid_file) = &self.cycle.pid_file {
            cycle::remove_pid_file(pid_file, self.master.is_superseded(), &self.cycle.log);
        }
        self.close_listeners();
        self.log(LogLevel::Notice, "exit");
    }

    /// No other binary runs beside this one.
    fn is_alone(&self) -> bool {
        !self.master.is_superseded() && self.old_binary != Some(Pid::parent())
    }

    fn log(&self, level: LogLevel, line: &str) {
        self.cycle.log.write(level, line);
    }
}

/// Questions that may wait at a worker process.
const UNTAKEN_MAX: u32 = 4;

/// `nginx: master process /usr/sbin/nginx -c FILE`.
fn master_title(launch: &Launch) -> String {
    let mut title = format!("{}: master process", launch.program);
    for argument in &launch.invocation.arguments {
        title.push(' ');
        title.push_str(&argument.to_string_lossy());
    }
    title
}

fn ending(status: ExitStatus) -> Ending {
    match (status.signal(), status.code()) {
        (Some(number), _) => Ending::Signal {
            number,
            core_dumped: status.core_dumped(),
        },
        (None, code) => Ending::Code(code.unwrap_or(0)),
    }
}

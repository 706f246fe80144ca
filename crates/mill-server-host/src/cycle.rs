//! A configuration with everything that the master holds open for it. The word is nginx's.

use crate::launch::Launch;
use crate::listening::{BIND_ATTEMPTS, Listening, Opening, Origin, Wanted};
use crate::log_files;
use crate::message::{Configuration, LogFile};
use crate::packet_marks;
use crate::pid_file::PidFile;
use crate::privileges::Identity;
use crate::process_log::{ProcessLog, describe};
use crate::stack;
use crate::stack_choice;
use crate::temporary_directories;
use mill_config::Config;
use mill_config::bundle::Bundle;
use mill_config::config::{LogLevel, Main};
use mill_tls::tickets::TicketSecret;
use std::io;

/// One configuration in force.
#[derive(Debug)]
pub struct Cycle {
    /// Counts the configurations since the start, from 1.
    pub generation: u64,
    pub config: Config,
    pub bundle: Bundle,
    pub identity: Option<Identity>,
    pub listening: Listening,
    pub logs: Vec<LogFile>,
    pub log: ProcessLog,
    pub pid_file: Option<PidFile>,
    /// What keys of TLS tickets are made from; the same for all cycles, and for binaries that replace this one.
    pub ticket_secret: Option<TicketSecret>,
}

/// The cycle could not be opened; the reason is in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotOpened {
    /// The configuration is bad, or a file that it names cannot be opened.
    Configuration,
    /// An address cannot be listened on.
    Sockets,
}

impl Cycle {
    /// Reads the configuration and opens what it names, with sockets taken over where they are the same.
    pub fn open(
        launch: &Launch,
        generation: u64,
        present: &Listening,
        log: &ProcessLog,
    ) -> Result<Self, NotOpened> {
        let (config, bundle) = read(launch, LogLevel::Notice, log)?;
        let identity = Identity::resolve(&config.main).map_err(|error| {
            log.write_diagnostic(&error);
            NotOpened::Configuration
        })?;
        let logs = open_logs(&config, log)?;
        let log = log.configured(&config.main.error_log, |path| {
            let file = logs.iter().find(|log| log.path == path)?;
            file.file.try_clone().ok()
        });
        let uid = identity.as_ref().map(|identity| identity.account.uid);
        for (path, error) in temporary_directories::create_all(&config, uid) {
            let what = format!("mkdir() \"{path}\" failed {}", describe(&error));
            log.write(LogLevel::Error, &what);
        }
        let opening = Opening {
            threads: stack::thread_count(&config.main, launch.stack.as_ref()),
            test: false,
            attempts: match launch.by_options {
                true => 1,
                false => BIND_ATTEMPTS,
            },
        };
        let listening = present
            .reopen(&wanted(launch, &config), opening, &log)
            .map_err(|_| NotOpened::Sockets)?;
        let pid_file = launch.has_pid_file.then(|| PidFile::new(&config.main.pid));
        Ok(Self {
            generation,
            config,
            bundle,
            identity,
            listening,
            logs,
            log,
            pid_file,
            ticket_secret: None,
        })
    }

    /// The configuration that follows this one; unchanged sockets are kept. This cycle is not changed.
    pub fn next(&self, launch: &Launch) -> Result<Self, NotOpened> {
        let mut next = Self::open(launch, self.generation + 1, &self.listening, &self.log)?;
        next.ticket_secret.clone_from(&self.ticket_secret);
        for setting in fixed_settings(&self.config.main, &next.config.main) {
            let what = format!("\"{setting}\" has changed: that takes effect with a restart only");
            next.log.write(LogLevel::Warn, &what);
        }
        next.move_pid_file(self)?;
        self.listening
            .remove_files(Some(&next.listening), &next.log);
        Ok(next)
    }

    /// For the worker process, or the worker threads of this one.
    pub fn configuration(&self) -> io::Result<Configuration> {
        Ok(Configuration {
            generation: self.generation,
            bundle: self.bundle.clone(),
            sockets: self.listening.duplicate()?,
            logs: duplicate(&self.logs)?,
            ticket_secret: self.ticket_secret.clone(),
        })
    }

    /// Opens the log files again after they were renamed. Files that cannot be opened stay as they are.
    pub fn reopen_logs(&mut self) -> io::Result<Vec<LogFile>> {
        let uid = self.identity.as_ref().map(|identity| identity.account.uid);
        for log in &mut self.logs {
            match log_files::reopen(log) {
                Ok(file) => log.file = file,
                Err(error) => {
                    let path = String::from_utf8_lossy(&log.path);
                    let what = format!("open() \"{path}\" failed {}", describe(&error));
                    self.log.write(LogLevel::Emerg, &what);
                }
            }
        }
        if let Some(uid) = uid
            && let Err(failed) = log_files::give_to(&self.logs, uid)
        {
            let path = String::from_utf8_lossy(&failed.path);
            let what = format!("chown() \"{path}\" failed {}", describe(&failed.error));
            self.log.write(LogLevel::Emerg, &what);
        }
        let logs = &self.logs;
        self.log = self.log.configured(&self.config.main.error_log, |path| {
            logs.iter()
                .find(|log| log.path == path)?
                .file
                .try_clone()
                .ok()
        });
        duplicate(&self.logs)
    }

    fn move_pid_file(&self, before: &Self) -> Result<(), NotOpened> {
        let (Some(new), Some(old)) = (&self.pid_file, &before.pid_file) else {
            return Ok(());
        };
        if new == old {
            return Ok(());
        }
        write_pid_file(new, &self.log)?;
        remove_pid_file(old, false, &self.log);
        Ok(())
    }
}

/// Reads a configuration and logs its errors, warnings and notices down to `level`.
pub fn read(
    launch: &Launch,
    level: LogLevel,
    log: &ProcessLog,
) -> Result<(Config, Bundle), NotOpened> {
    let reading = launch.texts.read(&launch.options);
    for remark in reading
        .remarks
        .iter()
        .filter(|remark| remark.level <= level)
    {
        log.write_diagnostic(remark);
    }
    let result = reading.result.map_err(Box::new);
    let checked = result.and_then(|config| {
        stack_choice::of_configuration(&config, &launch.options)?;
        Ok(config)
    });
    match checked {
        Ok(config) => {
            for warning in packet_marks::warnings(&config, launch.stack.is_some()) {
                log.write_diagnostic(&warning);
            }
            Ok((config, reading.bundle))
        }
        Err(error) => {
            log.write_diagnostic(&error);
            Err(NotOpened::Configuration)
        }
    }
}

/// Opens all logs of a configuration.
pub fn open_logs(config: &Config, log: &ProcessLog) -> Result<Vec<LogFile>, NotOpened> {
    log_files::open_all(config).map_err(|failed| {
        let path = String::from_utf8_lossy(&failed.path);
        let what = format!("open() \"{path}\" failed {}", describe(&failed.error));
        log.write(LogLevel::Emerg, &what);
        NotOpened::Configuration
    })
}

pub fn write_pid_file(file: &PidFile, log: &ProcessLog) -> Result<(), NotOpened> {
    file.write().map_err(|error| {
        let (path, why) = (file.path().display(), describe(&error));
        log.write(LogLevel::Emerg, &format!("open() \"{path}\" failed {why}"));
        NotOpened::Configuration
    })
}

pub fn remove_pid_file(file: &PidFile, superseded: bool, log: &ProcessLog) {
    if let Err(error) = file.remove(superseded) {
        let (path, why) = (file.path().display(), describe(&error));
        log.write(
            LogLevel::Alert,
            &format!("unlink() \"{path}\" failed {why}"),
        );
    }
}

/// The kernel sockets that a configuration needs.
pub fn wanted(launch: &Launch, config: &Config) -> Vec<Wanted> {
    config
        .sockets()
        .filter(|listener| !stack::is_own(listener.address, launch.stack.as_ref()))
        .map(|listener| Wanted {
            address: listener.address.clone(),
            options: listener.options.clone(),
            origin: match launch.by_options {
                true => Origin::Options,
                false => Origin::Listen(listener.spot.clone()),
            },
        })
        .collect()
}

/// Settings that differ and that running processes and threads cannot take.
fn fixed_settings(before: &Main, after: &Main) -> Vec<&'static str> {
    let changes = [
        ("user", before.user != after.user),
        ("daemon", before.daemon != after.daemon),
        (
            "master_process",
            before.master_process != after.master_process,
        ),
        (
            "worker_rlimit_nofile",
            before.worker_rlimit_nofile != after.worker_rlimit_nofile,
        ),
        (
            "worker_rlimit_core",
            before.worker_rlimit_core != after.worker_rlimit_core,
        ),
        (
            "worker_priority",
            before.worker_priority != after.worker_priority,
        ),
        (
            "worker_cpu_affinity",
            before.worker_cpu_affinity != after.worker_cpu_affinity,
        ),
        (
            "working_directory",
            before.working_directory != after.working_directory,
        ),
        ("env", before.env != after.env),
        ("network_stack", before.network_stack != after.network_stack),
    ];
    changes
        .into_iter()
        .filter(|(_, changed)| *changed)
        .map(|(name, _)| name)
        .collect()
}

fn duplicate(logs: &[LogFile]) -> io::Result<Vec<LogFile>> {
    logs.iter()
        .map(|log| {
            Ok(LogFile {
                path: log.path.clone(),
                file: log.file.try_clone()?,
            })
        })
        .collect()
}

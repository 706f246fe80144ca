//! The error log of the master and of the worker process's control thread: lines in nginx's form, written at once.

use mill_config::config::{ErrorLog, ErrorLogTarget, LogLevel};
use mill_config::diagnostic::Diagnostic;
use mill_sys::process::Pid;
use mill_sys::{clock, descriptor, local_time};
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

/// Where lines go. Clones write to the same files.
#[derive(Clone, Debug)]
pub struct ProcessLog {
    program: &'static str,
    outputs: Vec<Output>,
    /// Until start-up is over, serious lines also go to the terminal.
    use_stderr: bool,
}

#[derive(Clone, Debug)]
struct Output {
    target: Target,
    level: LogLevel,
}

#[derive(Clone, Debug)]
enum Target {
    Stderr,
    File(Arc<File>),
}

impl ProcessLog {
    /// Before a configuration is read: no log, serious lines to the terminal as `PROGRAM: [LEVEL] …`.
    pub fn to_terminal(program: &'static str) -> Self {
        Self {
            program,
            outputs: Vec::new(),
            use_stderr: true,
        }
    }

    /// Before a configuration is read, as nginx with a default error log: notices too, with date and process.
    #[must_use]
    pub fn with_stderr(mut self) -> Self {
        self.outputs.push(Output {
            target: Target::Stderr,
            level: LogLevel::Notice,
        });
        self
    }

    /// The same to a file (`-e`).
    #[must_use]
    pub fn with_file(mut self, file: File) -> Self {
        self.outputs.push(Output {
            target: Target::File(Arc::new(file)),
            level: LogLevel::Notice,
        });
        self
    }

    /// As `error_log` says. `open` gives the file of a path; a path it does not know is left out.
    #[must_use]
    pub fn configured(&self, logs: &[ErrorLog], open: impl Fn(&[u8]) -> Option<File>) -> Self {
        let target = |log: &ErrorLog| match &log.target {
            ErrorLogTarget::Stderr => Some(Target::Stderr),
            ErrorLogTarget::File(path) => open(path).map(|file| Target::File(Arc::new(file))),
        };
        let outputs = logs.iter().filter_map(|log| {
            Some(Output {
                target: target(log)?,
                level: log.level,
            })
        });
        Self {
            program: self.program,
            outputs: outputs.collect(),
            use_stderr: self.use_stderr,
        }
    }

    /// The same log through descriptors of its own, which are closed when it is dropped.
    pub fn duplicate(&self) -> std::io::Result<Self> {
        let mut log = self.clone();
        for output in &mut log.outputs {
            if let Target::File(file) = &mut output.target {
                *file = Arc::new(file.try_clone()?);
            }
        }
        Ok(log)
    }

    /// Start-up is over: lines no longer go to the terminal.
    pub fn leave_terminal(&mut self) {
        self.use_stderr = false;
    }

    /// The files that lines go to.
    pub fn files(&self) -> impl Iterator<Item = &File> {
        self.outputs
            .iter()
            .filter_map(|output| match &output.target {
                Target::File(file) => Some(&**file),
                Target::Stderr => None,
            })
    }

    /// Writes a line. If the log cannot be written to (a full disk), the line is lost.
    pub fn write(&self, level: LogLevel, message: &str) {
        let mut shown = false;
        let mut line = None;
        for output in self.outputs.iter().filter(|output| level <= output.level) {
            let line = line.get_or_insert_with(|| dated_line(level, message));
            let _ = match &output.target {
                Target::Stderr => {
                    shown = true;
                    std::io::stderr().write_all(line.as_bytes())
                }
                Target::File(file) => (&**file).write_all(line.as_bytes()),
            };
        }
        if self.use_stderr && !shown && level <= LogLevel::Warn {
            let line = format!("{}: [{}] {message}\n", self.program, level.name());
            let _ = std::io::stderr().write_all(line.as_bytes());
        }
    }

    /// Writes a line that is already on the terminal.
    pub fn write_to_files(&self, level: LogLevel, message: &str) {
        for output in self.outputs.iter().filter(|output| level <= output.level) {
            if let Target::File(file) = &output.target {
                // As above.
                let _ = (&**file).write_all(dated_line(level, message).as_bytes());
            }
        }
    }

    /// Writes an error in a configuration: its line into the logs, the rest (the source line with a caret, and advice)
    /// below it on the terminal, or at the end of the line where there is no terminal.
    pub fn write_diagnostic(&self, diagnostic: &Diagnostic) {
        let line = diagnostic.line();
        let prefix = format!("[{}] ", diagnostic.level.name());
        let message = line.strip_prefix(&prefix).unwrap_or(&line);
        let to_terminal = self.use_stderr && diagnostic.level <= LogLevel::Warn;
        match &diagnostic.help {
            Some(help) if !to_terminal => {
                self.write(diagnostic.level, &format!("{message} ({help})"));
            }
            _ => self.write(diagnostic.level, message),
        }
        if !to_terminal {
            let lines = diagnostic.details.iter();
            lines.for_each(|line| self.write(diagnostic.level, line));
        }
        if to_terminal {
            let whole = diagnostic.render(self.program);
            if let Some((_, rest)) = whole.split_once('\n') {
                let _ = std::io::stderr().write_all(rest.as_bytes());
            }
        }
    }

    /// Writes advice about the last line to the terminal.
    pub fn help(&self, text: &str) {
        if self.use_stderr {
            let _ = std::io::stderr().write_all(format!("help: {text}\n").as_bytes());
        }
    }
}

/// Redirects standard error, and with it the message of a panic, to the error log, as nginx does.
pub fn redirect_stderr(log: &ProcessLog) {
    if let Some(file) = log.files().next()
        && let Err(error) = descriptor::redirect(descriptor::Stream::Error, file.as_fd())
    {
        let what = format!("dup2(STDERR) failed {}", describe(&error));
        log.write(LogLevel::Alert, &what);
    }
}

/// `2026/11/21 01:51:22 [notice] 12290#12290: message`; the thread's number is that of the process, since only main
/// threads write here.
fn dated_line(level: LogLevel, message: &str) -> String {
    let now = i64::try_from(clock::realtime().as_secs()).unwrap_or(0);
    let pid = Pid::own();
    let date = local_time::local_time(now).map_or(String::new(), |time| {
        format!(
            "{:04}/{:02}/{:02} {:02}:{:02}:{:02}",
            time.year, time.month, time.day, time.hour, time.minute, time.second
        )
    });
    format!("{date} [{}] {pid}#{pid}: {message}\n", level.name())
}

/// A system error as nginx writes it: `(98: Address already in use)`.
pub fn describe(error: &std::io::Error) -> String {
    let Some(code) = error.raw_os_error() else {
        return format!("({error})");
    };
    let text = error.to_string();
    let text = text
        .strip_suffix(&format!(" (os error {code})"))
        .unwrap_or(&text);
    format!("({code}: {text})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_sys::passing;
    use std::io::{Read, Seek};

    fn written(level: LogLevel, write: impl Fn(&ProcessLog)) -> String {
        let mut file = passing::memory_file(c"log").unwrap();
        let logs = [ErrorLog {
            target: ErrorLogTarget::File("/log".into()),
            level,
        }];
        let mut log = ProcessLog::to_terminal("nginx").configured(&logs, |path| {
            assert_eq!(path, b"/log");
            file.try_clone().ok()
        });
        log.leave_terminal();
        write(&log);
        let mut text = String::new();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_line_has_date_level_process_and_message() {
        let text = written(LogLevel::Notice, |log| log.write(LogLevel::Notice, "exit"));
        let (date, rest) = text.split_at(20);
        assert!(
            date.chars()
                .all(|character| "0123456789/: ".contains(character)),
            "{date}"
        );
        let pid = std::process::id();
        assert_eq!(rest, format!("[notice] {pid}#{pid}: exit\n"));
    }

    #[test]
    fn only_lines_as_severe_as_the_level_are_written() {
        let all = |log: &ProcessLog| {
            LogLevel::ALL
                .into_iter()
                .for_each(|level| log.write(level, "x"))
        };
        assert_eq!(written(LogLevel::Emerg, all).lines().count(), 1);
        assert_eq!(written(LogLevel::Error, all).lines().count(), 4);
        assert_eq!(written(LogLevel::Debug, all).lines().count(), 8);
    }

    #[test]
    fn the_help_of_a_diagnostic_is_not_lost_in_a_log() {
        let mut diagnostic = Diagnostic::new(
            LogLevel::Emerg,
            "unknown directive \"lisen\"",
            mill_config::diagnostic::SourcePosition::None,
        );
        diagnostic.help = Some(String::from("did you mean \"listen\"?"));
        let text = written(LogLevel::Error, |log| log.write_diagnostic(&diagnostic));
        assert!(
            text.ends_with(": unknown directive \"lisen\" (did you mean \"listen\"?)\n"),
            "{text}"
        );
    }

    #[test]
    fn errors_of_the_system_read_as_in_nginx() {
        let error = std::io::Error::from_raw_os_error(98);
        assert_eq!(describe(&error), "(98: Address already in use)");
    }
}

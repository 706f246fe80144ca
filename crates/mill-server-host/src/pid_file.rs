//! The pid file: `-s` and service managers find the master by it.

use mill_sys::process::Pid;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The path of the pid file, and the path it has during an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PidFile {
    path: PathBuf,
}

/// The content of a pid file.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    Process(Pid),
    /// Something else; shown in the error message.
    Invalid(String),
}

impl PidFile {
    pub fn new(path: &[u8]) -> Self {
        Self {
            path: PathBuf::from(OsStr::from_bytes(path)),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the pid file while a new binary has the usual one.
    pub fn old_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(OLD_SUFFIX);
        PathBuf::from(path)
    }

    /// Writes the number of this process, replacing the number of a dead process.
    pub fn write(&self) -> io::Result<()> {
        let mut file = open(&self.path, true)?;
        writeln!(file, "{}", Pid::own())
    }

    /// Whether it could be written; creates an empty one if there is none, as `nginx -t` does.
    pub fn test(&self) -> io::Result<()> {
        open(&self.path, false).map(drop)
    }

    /// Reads it.
    pub fn read(&self) -> io::Result<Content> {
        let mut text = String::new();
        // Longer content cannot be a number.
        let file = fs::File::open(&self.path)?;
        file.take(LEN_MAX).read_to_string(&mut text)?;
        let number = text.trim_end_matches(['\r', '\n']);
        let pid = number.parse().ok().and_then(Pid::new);
        Ok(pid.map_or_else(|| Content::Invalid(number.to_owned()), Content::Process))
    }

    /// Renames it to make room for the new binary's.
    pub fn set_aside(&self) -> io::Result<()> {
        fs::rename(&self.path, self.old_path())
    }

    /// Renames it back to the usual path.
    pub fn restore(&self) -> io::Result<()> {
        fs::rename(self.old_path(), &self.path)
    }

    /// Removes it from its usual path, or from the one it has during an upgrade.
    pub fn remove(&self, superseded: bool) -> io::Result<()> {
        if superseded {
            fs::remove_file(self.old_path())
        } else {
            fs::remove_file(&self.path)
        }
    }
}

fn open(path: &Path, truncate: bool) -> io::Result<fs::File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(truncate)
        .mode(0o644)
        .open(path)
}

/// nginx's suffix for the pid file of a binary that is being replaced.
const OLD_SUFFIX: &str = ".oldbin";

/// Bytes of a pid file that are read: more than any number has.
const LEN_MAX: u64 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn check_content(text: &str, expected: Content) {
        let directory = crate::scratch::Directory::new();
        let pid_file = PidFile::new(directory.path("pid").as_os_str().as_bytes());
        fs::write(pid_file.path(), text).unwrap();
        assert_eq!(pid_file.read().unwrap(), expected, "{text:?}");
    }

    #[test]
    fn a_number_is_a_process_and_all_else_is_shown() {
        check_content("12\n", Content::Process(Pid::new(12).unwrap()));
        check_content("12", Content::Process(Pid::new(12).unwrap()));
        check_content("", Content::Invalid(String::new()));
        check_content("abc\n", Content::Invalid(String::from("abc")));
        check_content("0\n", Content::Invalid(String::from("0")));
        check_content("-1\n", Content::Invalid(String::from("-1")));
        check_content(
            "99999999999\n",
            Content::Invalid(String::from("99999999999")),
        );
    }

    #[test]
    fn an_upgrade_moves_it_aside_and_back() {
        let directory = crate::scratch::Directory::new();
        let pid_file = PidFile::new(directory.path("pid").as_os_str().as_bytes());
        pid_file.write().unwrap();
        assert_eq!(pid_file.read().unwrap(), Content::Process(Pid::own()));
        pid_file.set_aside().unwrap();
        assert!(pid_file.read().is_err());
        pid_file.restore().unwrap();
        pid_file.set_aside().unwrap();
        pid_file.remove(true).unwrap();
        assert!(!pid_file.old_path().exists());
    }

    #[test]
    fn a_test_leaves_the_content_alone() {
        let directory = crate::scratch::Directory::new();
        let pid_file = PidFile::new(directory.path("pid").as_os_str().as_bytes());
        pid_file.test().unwrap();
        assert_eq!(pid_file.read().unwrap(), Content::Invalid(String::new()));
        pid_file.write().unwrap();
        pid_file.test().unwrap();
        assert_eq!(pid_file.read().unwrap(), Content::Process(Pid::own()));
    }
}

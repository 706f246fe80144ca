//! A private folder on the host where a system runs: configuration, content, logs.

use crate::host::{Host, Line};
use crate::journal::{Entry, Journal};
use crate::remote_shell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// A folder, local or remote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostFolder {
    host: Host,
    folder: PathBuf,
}

impl HostFolder {
    /// Makes the folder, readable for the users that servers change to. The journal removes it.
    pub fn make(host: &Host, folder: &Path, journal: &mut Journal) -> io::Result<Self> {
        let place = Self {
            host: host.clone(),
            folder: folder.to_owned(),
        };
        if let Host::Remote(_) = host {
            let path = folder.display().to_string();
            journal.note(&Entry::Ran {
                host: host.clone(),
                argv: vec![String::from("mkdir"), String::from("-p"), path.clone()],
                undo: vec![String::from("rm"), String::from("-rf"), path.clone()],
            })?;
            place.far(&["mkdir", "-p", &path], &[])?;
        } else {
            journal.note(&Entry::MadeFolder {
                path: folder.display().to_string(),
            })?;
            std::fs::create_dir_all(folder)?;
        }
        Ok(place)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a file, and makes its parent folders.
    pub fn write(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        let parent = path.parent().unwrap_or(&self.folder);
        if let Host::Remote(_) = self.host {
            let shell = "mkdir -p \"$1\" && cat > \"$2\"";
            let (folder, file) = (parent.display().to_string(), path.display().to_string());
            self.far(&["sh", "-c", shell, "sh", &folder, &file], bytes)?;
        } else {
            std::fs::create_dir_all(parent)?;
            std::fs::write(&path, bytes)?;
        }
        Ok(path)
    }

    /// Reads a file that a process wrote.
    pub fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let path = self.folder.join(name);
        match self.host {
            Host::Remote(_) => self.far(&["cat", &path.display().to_string()], &[]),
            _ => std::fs::read(path),
        }
    }

    fn far(&self, argv: &[&str], input: &[u8]) -> io::Result<Vec<u8>> {
        let Host::Remote(target) = &self.host else {
            unreachable!("only remote places are reached by commands");
        };
        let far = argv
            .iter()
            .map(|word| crate::host::quoted(word))
            .collect::<Vec<_>>()
            .join(" ");
        // Without -tt: the stream is binary.
        let mut words = remote_shell::words(&["-o", "BatchMode=yes"], target);
        words.push(far.clone());
        let line = Line::new(words);
        let mut child = Host::Local
            .command(&line)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            stdin.write_all(input)?;
        }
        let output = child.wait_with_output()?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!(
            "ssh {target} {far}: {}",
            said.trim()
        )))
    }
}

//! Goes to the background; the calling process exits only when the start has succeeded or failed.

use mill_sys::descriptor::{self, Stream};
use mill_sys::passing;
use mill_sys::process::{self, Fork};
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

/// Which of the two processes this is.
#[derive(Debug)]
pub enum Side {
    /// The process that was called: it has waited for the other, and exits with this code.
    Foreground(ExitCode),
    /// The one that serves.
    Background(Waiting),
}

/// The calling process waits until this is released; if it is dropped unreleased, it reports a failure.
#[derive(Debug)]
pub struct Waiting(OwnedFd);

impl Waiting {
    /// The server runs: the calling process may exit.
    pub fn release(self) {
        // The waiting process may have been killed meanwhile.
        let _ = passing::send(self.0.as_fd(), b"1", &[]);
    }
}

/// Forks a process without a terminal, which goes on as the server. Standard input and output become /dev/null;
/// standard error stays for messages of the start.
pub fn detach() -> io::Result<Side> {
    let (here, there) = passing::pair()?;
    match process::fork()? {
        Fork::Parent(_) => {
            drop(there);
            let (len, _) = passing::receive(here.as_fd(), &mut [0; 1])?;
            let started = len == 1;
            let code = if started {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            };
            Ok(Side::Foreground(code))
        }
        Fork::Child => {
            drop(here);
            process::new_session()?;
            process::set_umask(0);
            let null = OpenOptions::new()
                .read(true)
                .write(true)
                .open("/dev/null")?;
            descriptor::redirect(Stream::Input, null.as_fd())?;
            descriptor::redirect(Stream::Output, null.as_fd())?;
            Ok(Side::Background(Waiting(there)))
        }
    }
}

//! Going to the background, without leaving before it is known whether that worked.

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
    /// The one that was called; it has waited for the other, and is to end with this code.
    Foreground(ExitCode),
    /// The one that serves.
    Background(Waiting),
}

/// The process that was called waits for this to be released; dropped unreleased, it reports a failure.
#[derive(Debug)]
pub struct Waiting(OwnedFd);

impl Waiting {
    /// Everything is running: the process that was called may end.
    pub fn release(self) {
        // If it has been killed meanwhile, nobody waits.
        let _ = passing::send(self.0.as_fd(), b"1", &[]);
    }
}

/// Splits off a process without a terminal that serves on. Standard input and output become /dev/null; standard error
/// stays for messages of the start.
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

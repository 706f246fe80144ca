//! Starting a program on a stack: a keeper is forked, and this process becomes the program.

use crate::executable;
use crate::joining::{self, Joined};
use crate::keeper::{self, Keeper};
use crate::request::{ADDRESSES, CLUSTER, STACKS, VARIABLE, VERBOSE};
use mill_device::specification::Specification;
use mill_device::specification::settings::StacksPer;
use mill_sys::clock;
use mill_sys::descriptor::{self, Stream};
use mill_sys::process::{self, Fork};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

/// What is to be started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The text of `--stack`.
    pub stack: String,
    pub program: OsString,
    pub arguments: Vec<OsString>,
    /// A program whose calls cannot be seen runs on the kernel's stack.
    pub force: bool,
    /// The library, if it is not beside this program.
    pub library: Option<PathBuf>,
    /// What the program's processes are called together.
    pub cluster: Option<String>,
    /// Each process says which stack it has.
    pub verbose: bool,
}

impl Launch {
    /// Becomes the program; returns only what went wrong, as a sentence. `say` is told what could not be had as requested.
    pub fn run(&self, say: impl Fn(&str)) -> String {
        match self.prepare(&say) {
            Ok(mut command) => {
                let error = command.exec();
                format!("\"{}\" can't be started: {error}", self.program.display())
            }
            Err(what) => what,
        }
    }

    fn prepare(&self, say: &impl Fn(&str)) -> Result<Command, String> {
        let name = self.program.display();
        let path = executable::find(&self.program)
            .ok_or_else(|| format!("\"{name}\" was not found, in no folder of $PATH"))?;
        let mut command = Command::new(&path);
        command.arg0(&self.program).args(&self.arguments);
        if let Some(unseen) = executable::unseen(&path) {
            let why = unseen.why();
            if !self.force {
                return Err(format!(
                    "\"{name}\" {why}; \"--force\" runs it on the kernel's network stack"
                ));
            }
            say(&format!(
                "\"{name}\" {why}: it runs on the kernel's network stack"
            ));
            return Ok(command);
        }
        let library = self.library()?;
        let specification = keeper::parse(&self.stack)?;
        let socket = self.socket(&specification, say)?;
        // It outlives exec, far above the numbers that programs count on.
        let inherited = descriptor::inheritable(socket.as_fd(), NUMBER_MIN)
            .map_err(|error| format!("fcntl() failed: {error}"))?;
        let mut preload = library.into_os_string();
        if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env(PRELOAD, preload);
        command.env(VARIABLE, inherited.to_string());
        match specification.device.shares_addresses() {
            true => command.env_remove(ADDRESSES),
            false => command.env(ADDRESSES, own_addresses(&specification)),
        };
        match specification.stacks {
            StacksPer::Process => command.env_remove(STACKS),
            StacksPer::Thread => command.env(STACKS, "thread"),
        };
        self.name_and_tell(&mut command);
        Ok(command)
    }

    /// The socket to the keeper that has the device, or to a new one.
    fn socket(
        &self,
        specification: &Specification,
        say: &impl Fn(&str),
    ) -> Result<OwnedFd, String> {
        let name = self.program.display().to_string();
        let deadline = clock::monotonic() + PATIENCE;
        let mut has_failed = false;
        loop {
            match joining::join(&name, &self.stack, specification) {
                Joined::Yes(socket, words) => {
                    say(&format!("\"{name}\" has {words}"));
                    return Ok(socket);
                }
                Joined::Refused(why) => return Err(why),
                // The interface is free in a moment.
                Joined::IsEnding if clock::monotonic() < deadline => {
                    thread::park_timeout(PAUSE);
                    continue;
                }
                Joined::IsEnding | Joined::NoKeeper => {}
            }
            let (keeper, socket, notices) = match Keeper::new(&name, &self.stack) {
                Ok(made) => made,
                // Another program that began at the same moment may have it.
                Err(_) if !has_failed && joining::has_keeper(specification) => {
                    has_failed = true;
                    continue;
                }
                Err(why) => return Err(why),
            };
            notices.iter().for_each(|notice| say(notice));
            say(&format!("\"{name}\" has {}", keeper.offer()));
            return fork_off(keeper, socket);
        }
    }

    /// What the library says and shows of itself.
    fn name_and_tell(&self, command: &mut Command) {
        if let Some(cluster) = &self.cluster {
            command.env(CLUSTER, cluster);
        }
        match self.verbose {
            true => command.env(VERBOSE, "1"),
            false => command.env_remove(VERBOSE),
        };
    }

    /// The library: as given, else beside this program or in the `lib` folder beside that.
    fn library(&self) -> Result<PathBuf, String> {
        if let Some(library) = &self.library {
            let found = library.canonicalize();
            return found.map_err(|error| format!("{}: {error}", library.display()));
        }
        let own = std::env::current_exe().map_err(|error| format!("/proc/self/exe: {error}"))?;
        let folder = own.parent().unwrap_or(Path::new("/"));
        let places = [folder.join(LIBRARY), folder.join("../lib").join(LIBRARY)];
        let found = places.iter().find(|place| place.is_file());
        found.and_then(|place| place.canonicalize().ok()).ok_or_else(|| {
            format!(
                "{LIBRARY} is not in {}: \"cargo build --release\" of the whole workspace makes it, \"--library\" says where it is",
                folder.display()
            )
        })
    }
}

/// A child of a child, so that the program never waits for a process that it does not know. It does not have the program's socket,
/// whose end tells it of the program's.
fn fork_off(keeper: Keeper, socket: OwnedFd) -> Result<OwnedFd, String> {
    let failed = |call: &str, error: io::Error| format!("{call} failed: {error}");
    match process::fork().map_err(|error| failed("fork()", error))? {
        Fork::Child => {
            drop(socket);
            match process::fork() {
                Ok(Fork::Child) => keep(keeper),
                Ok(Fork::Parent(_)) => std::process::exit(0),
                Err(_) => std::process::exit(1),
            }
        }
        Fork::Parent(between) => {
            let ended = between.wait().map_err(|error| failed("wait()", error))?;
            match ended.success() {
                true => Ok(socket),
                false => Err(String::from("the keeper can't be forked")),
            }
        }
    }
}

/// The addresses that the stack has and the kernel does not.
fn own_addresses(specification: &Specification) -> String {
    let addresses = specification.addresses.iter();
    let addresses: Vec<String> = addresses.map(|own| own.address.to_string()).collect();
    addresses.join(" ")
}

/// The keeper's process, until its last user has ended. It has no terminal, whose signals end the program,
/// and none of its streams: what reads them would wait for further programs, too.
fn keep(keeper: Keeper) -> ! {
    let _ = process::new_session();
    let _ = process::set_name(c"mill-keeper");
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for stream in [Stream::Input, Stream::Output, Stream::Error] {
            let _ = descriptor::redirect(stream, nothing.as_fd());
        }
    }
    let code = keeper.run().is_err();
    std::process::exit(i32::from(code));
}

/// How long a keeper may take to end, and between two looks whether it has.
const PATIENCE: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(20);

const PRELOAD: &str = "LD_PRELOAD";

/// The library's file.
pub(crate) const LIBRARY: &str = "libmillstream.so";

/// The least number of the descriptor that a program inherits.
const NUMBER_MIN: i32 = 500;

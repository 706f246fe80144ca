//! Starting a program on a stack: a keeper is forked, and this process becomes the program.

use crate::executable;
use crate::keeper::Keeper;
use crate::request::{ADDRESSES, CLUSTER, STACKS, VARIABLE, VERBOSE};
use mill_device::specification::settings::StacksPer;
use mill_sys::descriptor::{self, Stream};
use mill_sys::process::{self, Fork};
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
        let (keeper, program, notices) = Keeper::new(&self.stack)?;
        notices.iter().for_each(|notice| say(notice));
        say(&format!("\"{name}\" has {}", keeper.offer()));
        let failed = |call: &str, error: io::Error| format!("{call} failed: {error}");
        let addresses: Vec<String> = keeper.addresses().iter().map(IpAddr::to_string).collect();
        let stacks = keeper.stacks();
        // A child of a child, so that the program never waits for a process that it does not know.
        match process::fork().map_err(|error| failed("fork()", error))? {
            Fork::Child => {
                drop(program);
                match process::fork() {
                    Ok(Fork::Child) => keep(keeper),
                    Ok(Fork::Parent(_)) => std::process::exit(0),
                    Err(_) => std::process::exit(1),
                }
            }
            Fork::Parent(between) => {
                let ended = between.wait().map_err(|error| failed("wait()", error))?;
                if !ended.success() {
                    return Err(String::from("the keeper can't be forked"));
                }
            }
        }
        drop(keeper);
        // It outlives exec, far above the numbers that programs count on.
        let inherited = descriptor::inheritable(program.as_fd(), NUMBER_MIN)
            .map_err(|error| failed("fcntl()", error))?;
        let mut preload = library.into_os_string();
        if let Some(others) = std::env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env(PRELOAD, preload);
        command.env(VARIABLE, inherited.to_string());
        match addresses.is_empty() {
            true => command.env_remove(ADDRESSES),
            false => command.env(ADDRESSES, addresses.join(" ")),
        };
        match stacks {
            StacksPer::Process => command.env_remove(STACKS),
            StacksPer::Thread => command.env(STACKS, "thread"),
        };
        self.name_and_tell(&mut command);
        Ok(command)
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

/// The keeper's process, until its last user has ended. It has no terminal: signals of the terminal end the program, not it.
fn keep(keeper: Keeper) -> ! {
    let _ = process::new_session();
    let _ = process::set_name(c"mill-keeper");
    if let Ok(nothing) = File::options().read(true).write(true).open("/dev/null") {
        for stream in [Stream::Input, Stream::Output] {
            let _ = descriptor::redirect(stream, nothing.as_fd());
        }
    }
    let code = keeper.run().is_err();
    std::process::exit(i32::from(code));
}

const PRELOAD: &str = "LD_PRELOAD";

/// The library's file.
pub(crate) const LIBRARY: &str = "libmillstream.so";

/// The least number of the descriptor that a program inherits.
const NUMBER_MIN: i32 = 500;

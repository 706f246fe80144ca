//! Virtual machines: guests of QEMU on a bridge, in a namespace of their own.
//!
//! ```text
//! guests = 1   msPID-c [ms0] ─┐                              clients on this machine
//!                             ├─ br0 (msPID-v) ─ TAP ─ guest [ms0]   server
//! guests = 2   guest [ms0] ───┘
//! ```

use super::link::{INTERFACE, Links, PREFIX, address};
use super::{Testbed, TopologyError, cpus};
use crate::host::{Host, Line};
use crate::interrupt::Interrupt;
use crate::journal::{Entry, Journal, errand};
use crate::process::{Process, Streams};
use crate::remote_shell;
use mill_guest::Kernel;
use mill_guest::initramfs::{self, Errand, READY};
use mill_guest::machine::{self, Acceleration, Card, Machine, Model};
use mill_lab::recipe::Topology;
use mill_sys::clock;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) fn raise(
    topology: &Topology,
    journal: &mut Journal,
    interrupt: &Interrupt,
) -> Result<Testbed, TopologyError> {
    let kernel = needed()?;
    let pinned = cpus::split(&cpus_of_this_machine(topology), &cpus::here()?)?;
    let folder = folder(journal)?;
    let key = key(&folder)?;
    let mut links = Links::new(journal);
    let wire = links.namespace("v")?;
    inside(
        &mut links,
        &wire,
        "link add br0 type bridge forward_delay 0 mcast_snooping 0",
    )?;
    inside(&mut links, &wire, "link set br0 up")?;
    let vcpus = topology.cpus.server_count.unwrap_or(1).max(1);
    let queues = topology.queues.unwrap_or(vcpus);
    let site = Site {
        kernel,
        folder,
        key,
        wire,
    };
    let server = site.start(&mut links, (SERVER, vcpus, queues), &pinned.server)?;
    let (client, client_cpus) = match topology.guests.unwrap_or(2) {
        1 => (site.client_here(&mut links)?, pinned.client),
        _ => {
            // Both boot at the same time.
            let client = site.start(&mut links, (CLIENT, vcpus, queues), &pinned.client)?;
            (site.booted(client, interrupt)?, (0..vcpus).collect())
        }
    };
    Ok(Testbed {
        server: site.booted(server, interrupt)?,
        clients: vec![client],
        address: address(SERVER),
        client_addresses: vec![address(CLIENT)],
        server_interface: String::from(INTERFACE),
        client_interface: String::from(INTERFACE),
        server_cpus: (0..vcpus).collect(),
        client_cpus,
        link_mbit: None,
    })
}

/// A guest that boots, or has booted.
struct Guest {
    number: u32,
    host: Host,
    qemu: Process,
}

/// What the guests are made of.
struct Site {
    kernel: Kernel,
    folder: PathBuf,
    /// The private key; the public one lies beside it.
    key: PathBuf,
    /// The namespace of QEMU and the bridge.
    wire: String,
}

impl Site {
    /// Starts a guest, on these CPUs of this machine.
    fn start(
        &self,
        links: &mut Links<'_>,
        (number, vcpus, queues): (u32, u32, u32),
        pinned: &[u32],
    ) -> Result<Guest, TopologyError> {
        let card = Card {
            model: Model::VirtioNet { queues },
            tap: format!("tap{number}"),
            number: last_byte(number),
        };
        let several = if queues > 1 { " multi_queue" } else { "" };
        let tap = &card.tap;
        inside(
            links,
            &self.wire,
            &format!("tuntap add {tap} mode tap vnet_hdr{several}"),
        )?;
        inside(links, &self.wire, &format!("link set {tap} master br0 up"))?;
        let port = port(number);
        let machine = Machine {
            cpus: vcpus,
            memory_mib: MEMORY_MIB,
            acceleration: Acceleration::here(),
            cards: vec![card],
            ssh_port: Some(port),
            monitor: None,
            console: machine::Console::Output,
        };
        let archive = self.archive()?;
        let mut line = Line::new(machine.command(&self.kernel, &archive));
        let list: Vec<String> = pinned.iter().map(ToString::to_string).collect();
        line.cpus = Some(list.join(",")).filter(|list| !list.is_empty());
        let streams = Streams {
            out: &self.console(number),
            err: &self.errors(number),
        };
        let host = Host::Namespace(self.wire.clone());
        let qemu = Process::start(&host, &line, "guest", streams, links.journal);
        Ok(Guest {
            number,
            host: Host::Remote(remote_shell::guest(&self.wire, port, &self.key)),
            qemu: qemu.map_err(|error| failed(&error))?,
        })
    }

    /// A client's namespace on the bridge.
    fn client_here(&self, links: &mut Links<'_>) -> Result<Host, TopologyError> {
        let client = links.namespace("c")?;
        inside(
            links,
            &client,
            &format!(
                "link add {INTERFACE} type veth peer name client netns {}",
                self.wire
            ),
        )?;
        inside(links, &self.wire, "link set client master br0 up")?;
        links.up(&client, CLIENT)?;
        Ok(Host::Namespace(client))
    }

    fn archive(&self) -> Result<PathBuf, TopologyError> {
        let path = self.folder.join("initramfs");
        if path.exists() {
            return Ok(path);
        }
        let public = fs::read_to_string(self.key.with_extension("pub"));
        let errand = Errand {
            job: None,
            authorized_key: Some(public.map_err(|error| failed(&error))?),
        };
        let built = initramfs::build(&self.kernel, &errand);
        let written = built.and_then(|bytes| fs::write(&path, bytes));
        written.map(|()| path).map_err(|error| failed(&error))
    }

    fn console(&self, number: u32) -> PathBuf {
        self.folder.join(format!("console{number}"))
    }

    /// What QEMU says.
    fn errors(&self, number: u32) -> PathBuf {
        self.folder.join(format!("errors{number}"))
    }

    /// Waits until the guest accepts commands, then gives its card name and address. The journal ends it.
    fn booted(&self, mut guest: Guest, interrupt: &Interrupt) -> Result<Host, TopologyError> {
        self.await_boot(&mut guest, interrupt)?;
        let number = guest.number;
        let script = set_up(last_byte(number), &address(number));
        let is_set_up = errand::run(&guest.host, &["sh", "-c", &script], None);
        is_set_up.map_err(|error| failed(&error))?;
        guest.qemu.leave_to_journal();
        Ok(guest.host)
    }

    fn await_boot(&self, guest: &mut Guest, interrupt: &Interrupt) -> Result<(), TopologyError> {
        let deadline = clock::monotonic() + BOOT_TIME_MAX;
        let console = self.console(guest.number);
        while !fs::read_to_string(&console).is_ok_and(|text| text.contains(READY)) {
            if let Some(status) = guest.qemu.wait(LOOK, interrupt) {
                let said = last_line(&self.errors(guest.number));
                let said = said.unwrap_or_else(|| last_line(&console).unwrap_or_default());
                return Err(TopologyError::Failed(format!(
                    "the guest has ended before it was ready: {said} (qemu: {status})"
                )));
            }
            if interrupt.is_asked() {
                return Err(TopologyError::Failed(String::from("interrupted")));
            }
            if clock::monotonic() > deadline {
                let last = last_line(&console).unwrap_or_default();
                let seconds = BOOT_TIME_MAX.as_secs();
                return Err(TopologyError::Failed(format!(
                    "the guest is not ready after {seconds} s: {last}"
                )));
            }
        }
        Ok(())
    }
}

/// The last line of a file that has any.
fn last_line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    text.trim().lines().last().map(String::from)
}

/// What a guest does to have its card under the lab's name.
fn set_up(last_byte: u8, address: &str) -> String {
    let mac = Card {
        model: Model::Igb,
        tap: String::new(),
        number: last_byte,
    }
    .address();
    format!(
        "for card in /sys/class/net/*; do \
         if [ \"$(cat $card/address)\" = {mac} ]; then ip link set ${{card##*/}} name {INTERFACE}; fi; done; \
         ip address add {address}/{PREFIX} dev {INTERFACE} && ip link set {INTERFACE} up"
    )
}

/// The kernel for guests, if the rest is there as well.
fn needed() -> Result<Kernel, TopologyError> {
    super::needs_root()?;
    let missing = initramfs::missing(true);
    if !missing.is_empty() {
        return Err(TopologyError::Absent(format!(
            "not on this machine: needs {} (setup/ensure vm)",
            missing.join(", ")
        )));
    }
    Kernel::find(None).map_err(|error| TopologyError::Absent(error.to_string()))
}

/// CPUs for QEMU's processes: a guest may have more than there are.
fn cpus_of_this_machine(topology: &Topology) -> mill_lab::recipe::Cpus {
    mill_lab::recipe::Cpus {
        server_count: None,
        ..topology.cpus.clone()
    }
}

fn folder(journal: &mut Journal) -> Result<PathBuf, TopologyError> {
    let name = format!(
        "millstream-guests-{}-{}",
        std::process::id(),
        journal.mark()
    );
    let path = std::env::temp_dir().join(name);
    journal
        .note(&Entry::MadeFolder {
            path: path.display().to_string(),
        })
        .and_then(|()| fs::create_dir(&path))
        .map_err(|error| failed(&error))?;
    Ok(path)
}

/// A key for these guests alone.
fn key(folder: &Path) -> Result<PathBuf, TopologyError> {
    let key = folder.join("key");
    let path = key.display().to_string();
    let words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", &path];
    errand::run(&Host::Local, &words, None).map_err(|error| failed(&error))?;
    Ok(key)
}

fn inside(links: &mut Links<'_>, namespace: &str, words: &str) -> Result<(), TopologyError> {
    let mut argv = vec!["ip", "-n", namespace];
    argv.extend(words.split(' '));
    links.make(&argv)
}

fn failed(error: &std::io::Error) -> TopologyError {
    TopologyError::Failed(error.to_string())
}

/// Places in the network.
const SERVER: u32 = 0;
const CLIENT: u32 = 1;

fn last_byte(number: u32) -> u8 {
    u8::try_from(number + 1).unwrap_or(u8::MAX)
}

/// A port of the namespace of QEMU, where nothing else listens.
fn port(number: u32) -> u16 {
    FIRST_PORT + u16::from(last_byte(number))
}

const FIRST_PORT: u16 = 2200;

/// Programs, as far as they are read, and what they write.
const MEMORY_MIB: u32 = 1024;

/// Emulated, a guest beside another one was seen to take 20 s.
const BOOT_TIME_MAX: Duration = Duration::from_secs(90);

/// How often its console is looked at.
const LOOK: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guest_finds_its_card_by_the_address() {
        let script = set_up(1, "10.213.0.1");
        assert!(script.contains("= 52:54:00:6d:67:01 ]"), "{script}");
        assert!(
            script.ends_with("ip address add 10.213.0.1/16 dev ms0 && ip link set ms0 up"),
            "{script}"
        );
    }

    #[test]
    fn guests_have_ports_of_their_own() {
        assert_eq!((port(SERVER), port(CLIENT)), (2201, 2202));
    }
}

//! The guest's cards, and the namespaces that they are taken into.

use crate::namespace::{alone, in_namespace, output_of, text_of};
use crate::server::wait_for;
use mill_sys::namespace;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A card as QEMU was told to make it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Card {
    /// Its name on QEMU's side, for the monitor.
    pub(crate) outside: &'static str,
    address: &'static str,
    /// How many queues the tests begin with.
    queues: u32,
    /// Options of the stack.
    pub(crate) options: &'static str,
}

/// As many queues as it has.
pub(crate) const VIRTIO_NET: Card = Card {
    outside: "card0",
    address: "52:54:00:6d:67:01",
    queues: 2,
    options: "",
};

/// With six queues, of which it uses two at first.
pub(crate) const VIRTIO_NET_WITH_SPARE_QUEUES: Card = Card {
    outside: "card1",
    address: "52:54:00:6d:67:02",
    queues: 2,
    options: "",
};

/// With more than four queues an interrupt serves both directions of a queue (`igb_set_flag_queue_pairs`). With a share of
/// 1024 frames for each queue a frame was once seen to come that the stack had already, under large uploads; with 4096 none
/// was. The cause is not known: docs/cards.md.
pub(crate) const IGB: Card = Card {
    outside: "card2",
    address: "52:54:00:6d:67:03",
    queues: 8,
    options: ",receive-frames=32768",
};

const CLIENTS: Card = Card {
    outside: "card3",
    address: "52:54:00:6d:67:04",
    queues: 1,
    options: "",
};

/// Their names in the namespaces.
pub(crate) const INTERFACE: &str = "mill0";
const FAR: &str = "mill1";

/// The server's address and the client's.
pub(crate) const ADDRESS: &str = "10.50.0.1";
const FAR_ADDRESS: &str = "10.50.0.2";

impl std::fmt::Display for Card {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} with {} queues", self.outside, self.queues)
    }
}

/// The namespaces of a test.
pub(crate) struct Wire {
    server: File,
    client: File,
    first: File,
    card: Card,
    /// The server's card in /sys/devices.
    pub(crate) device: PathBuf,
}

/// Runs a test in a namespace with this card, while the clients' card is in another one.
pub(crate) fn with_card(card: Card, test: impl FnOnce(&Wire) + Send) {
    if !Path::new(GUEST).exists() {
        println!("not tested: this needs a guest, \"cargo xtask vm\" has one");
        return;
    }
    // There is one card of a kind.
    alone(|| {
        in_namespace(|| {
            let server = here();
            namespace::leave_network().unwrap();
            let client = here();
            let first = File::open("/proc/1/ns/net").unwrap();
            namespace::enter_network(&first).unwrap();
            let device = take(card, &server, INTERFACE);
            take(CLIENTS, &client, FAR);
            let wire = Wire {
                server,
                client,
                first,
                card,
                device,
            };
            wire.at_client(|| begin(FAR, FAR_ADDRESS));
            // Refused where it is so already.
            let queues = card.queues.to_string();
            output_of("ethtool", &["-L", INTERFACE, "combined", &queues]);
            let channels = text_of("ethtool", &["-l", INTERFACE]);
            let mut combined = channels
                .lines()
                .filter_map(|line| line.strip_prefix("Combined:"));
            // The largest number comes first, the current one last.
            assert_eq!(
                combined.next_back().map(str::trim),
                Some(&*queues),
                "{channels}"
            );
            begin(INTERFACE, ADDRESS);
            test(&wire);
        })
    });
}

impl Wire {
    /// Runs something in the client's namespace; processes and connections that it starts stay there.
    pub(crate) fn at_client<T>(&self, run: impl FnOnce() -> T) -> T {
        self.within(&self.client, run)
    }

    /// Runs something in the namespace where cards begin.
    pub(crate) fn at_first<T>(&self, run: impl FnOnce() -> T) -> T {
        self.within(&self.first, run)
    }

    fn within<T>(&self, namespace: &File, run: impl FnOnce() -> T) -> T {
        namespace::enter_network(namespace).unwrap();
        let result = run();
        namespace::enter_network(&self.server).unwrap();
        result
    }
}

impl Drop for Wire {
    /// Gives the cards back. They would go back when the namespaces vanish, for which all that was started there has to end.
    fn drop(&mut self) {
        let taken = [
            (&self.server, INTERFACE, self.card),
            (&self.client, FAR, CLIENTS),
        ];
        for (namespace, name, card) in taken {
            let _ = namespace::enter_network(namespace);
            let _ = output_of("ip", &["link", "set", name, "down"]);
            let _ = moved(name, &self.first, card.outside);
        }
    }
}

/// The name of a card in the first namespace, once it is there: one that was without a driver comes back some time later.
fn name_of(address: &str) -> String {
    let mut found = None;
    wait_for(|| {
        let cards = fs::read_dir("/sys/class/net").unwrap().flatten();
        found = cards
            .map(|card| card.path())
            .find(|path| {
                fs::read_to_string(path.join("address")).is_ok_and(|text| text.trim() == address)
            })
            .and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        found.is_some()
    });
    found.unwrap()
}

impl Card {
    pub(crate) fn with_queues(self, queues: u32) -> Self {
        Self { queues, ..self }
    }

    /// Its name in the first namespace.
    pub(crate) fn name(self) -> String {
        name_of(self.address)
    }
}

/// Moves a card from the first namespace, in which the thread is; returns its place in /sys/devices.
fn take(card: Card, namespace: &File, name: &str) -> PathBuf {
    let found = card.name();
    let device = fs::canonicalize(format!("/sys/class/net/{found}/device")).unwrap();
    ip(&format!("link set {found} down"));
    assert!(moved(&found, namespace, name).unwrap());
    namespace::enter_network(namespace).unwrap();
    ip("link set lo up");
    let first = File::open("/proc/1/ns/net").unwrap();
    namespace::enter_network(&first).unwrap();
    device
}

/// Moves an interface of the thread's namespace; whether that succeeded.
fn moved(interface: &str, namespace: &File, name: &str) -> std::io::Result<bool> {
    let mut command = Command::new("ip");
    // The namespace has no name; ip(8) also accepts the path of an open file.
    let words = [
        "link",
        "set",
        interface,
        "netns",
        "/proc/self/fd/0",
        "name",
        name,
    ];
    command
        .args(words)
        .stdin(Stdio::from(namespace.try_clone()?));
    Ok(command.status()?.success())
}

/// Sets an interface up with an address.
pub(crate) fn begin(interface: &str, address: &str) {
    ip(&format!("address add {address}/24 dev {interface}"));
    ip(&format!("link set {interface} up"));
}

/// Runs ip(8) with these words, in the thread's namespace.
pub(crate) fn ip(words: &str) {
    let words: Vec<&str> = words.split_whitespace().collect();
    text_of("ip", &words);
}

fn here() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

/// Every guest has it (mill-guest).
const GUEST: &str = "/run/guest/start";

//! The guest's cards and what joins them: a namespace with a TAP device for each, on a bridge.

use mill_guest::machine::{Card, Model};
use mill_lab_host::host::Host;
use mill_lab_host::journal::{Entry, Journal};
use std::io;

/// The kinds of the cards, in the order of their numbers, which crates/millstream/tests/cards knows too.
const MODELS: [Model; 4] = [
    Model::VirtioNet { queues: 2 },
    Model::VirtioNet { queues: 6 },
    Model::Igb,
    Model::VirtioNet { queues: 1 },
];

/// Makes them; returns the namespace's name. It is removed with all that is in it.
pub(super) fn lay(journal: &mut Journal) -> io::Result<(String, Vec<Card>)> {
    let namespace = format!("ms{}-vm", std::process::id());
    journal.note(&Entry::MadeNamespace {
        name: namespace.clone(),
    })?;
    let mut make = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        journal.run(&Host::Local, &words, &[]).map(drop)
    };
    make(&format!("ip netns add {namespace}"))?;
    let mut inside = |words: &str| make(&format!("ip -n {namespace} {words}"));
    inside("link add br0 type bridge forward_delay 0 mcast_snooping 0")?;
    inside("link set br0 up")?;
    let cards = cards();
    for card in &cards {
        let several = match card.takes_several_queues() {
            true => " multi_queue",
            false => "",
        };
        let tap = &card.tap;
        inside(&format!("tuntap add {tap} mode tap vnet_hdr{several}"))?;
        inside(&format!("link set {tap} master br0 up"))?;
    }
    Ok((namespace, cards))
}

fn cards() -> Vec<Card> {
    let numbered = (1..).zip(MODELS);
    let card = |(number, model): (u8, Model)| Card {
        model,
        tap: format!("card{}", number - 1),
        number,
    };
    numbered.map(card).collect()
}

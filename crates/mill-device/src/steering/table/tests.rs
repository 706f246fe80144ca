//! What a table serves, shown by what the program then does with frames.

use super::*;
use crate::steering::tests::bench::{Bench, Fate, of_tcp, of_udp};
use crate::steering::tests::frames::{ACK, Frame, SYN, tcp, udp};

/// Whether SYNs for these targets go to the socket.
fn ours(bench: &Bench, targets: &[&str]) -> Vec<bool> {
    let is_ours = |target: &&str| {
        let source = if target.starts_with('[') {
            "[::9]:9"
        } else {
            "9.9.9.9:9"
        };
        let segment = Frame {
            flags: SYN,
            ..tcp(source, target)
        };
        bench.fate(&segment.bytes()) == Fate::Ours
    };
    targets.iter().map(is_ours).collect()
}

fn set(bench: &Bench, addresses: &[&str]) -> usize {
    let addresses: Vec<IpAddr> = addresses.iter().map(|one| one.parse().unwrap()).collect();
    bench.table.set_addresses(&addresses)
}

#[test]
fn wildcards_are_served_on_each_address_of_their_family() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let targets = ["10.0.0.1:80", "10.0.0.2:80", "[fd00::1]:80", "10.0.0.1:81"];
    bench.table.serve(of_tcp("0.0.0.0:80"), true);
    assert_eq!(ours(&bench, &targets), [false; 4]);
    set(&bench, &["10.0.0.1", "fd00::1"]);
    assert_eq!(ours(&bench, &targets), [true, false, false, false]);
    // Addresses that are added later too.
    set(&bench, &["10.0.0.2", "fd00::1", "10.0.0.1"]);
    assert_eq!(ours(&bench, &targets), [true, true, false, false]);
    bench.table.serve(of_tcp("[::]:80"), true);
    assert_eq!(ours(&bench, &targets), [true, true, true, false]);
    set(&bench, &["10.0.0.2"]);
    assert_eq!(ours(&bench, &targets), [false, true, false, false]);
    set(&bench, &["10.0.0.1", "fd00::1"]);
    assert_eq!(ours(&bench, &targets), [true, false, true, false]);
    bench.table.serve(of_tcp("0.0.0.0:80"), false);
    assert_eq!(ours(&bench, &targets), [false, false, true, false]);
}

#[test]
fn services_end_with_the_last_listener() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1"]);
    let targets = ["10.0.0.1:80"];
    let other = bench.table.clone();
    // It was not requested yet.
    bench.table.serve(of_tcp("10.0.0.1:80"), false);
    bench.table.serve(of_tcp("10.0.0.1:80"), true);
    other.serve(of_tcp("10.0.0.1:80"), true);
    other.serve(of_tcp("0.0.0.0:80"), true);
    bench.table.serve(of_tcp("10.0.0.1:80"), false);
    assert_eq!(ours(&bench, &targets), [true]);
    bench.table.serve(of_tcp("10.0.0.1:80"), false);
    assert_eq!(ours(&bench, &targets), [true]);
    bench.table.serve(of_tcp("0.0.0.0:80"), false);
    assert_eq!(ours(&bench, &targets), [false]);
    // UDP has bitmaps of its own, other protocols have none.
    bench.table.serve(of_udp("10.0.0.1:80"), true);
    let icmp = Service {
        protocol: Protocol::ICMPV4,
        ..of_tcp("10.0.0.1:80")
    };
    bench.table.serve(icmp, true);
    assert_eq!(ours(&bench, &targets), [false]);
    assert_eq!(
        bench.fate(&udp("9.9.9.9:9", targets[0]).bytes()),
        Fate::Ours
    );
}

#[test]
fn a_limited_number_of_addresses_has_room() {
    let Some(bench) = Bench::new() else {
        return;
    };
    bench.table.serve(of_tcp("0.0.0.0:80"), true);
    let many: Vec<IpAddr> = (0..=ADDRESSES_MAX)
        .map(|last| IpAddr::from([10, 0, 0, u8::try_from(last).unwrap()]))
        .collect();
    assert_eq!(bench.table.set_addresses(&many[..ADDRESSES_MAX]), 0);
    assert_eq!(
        ours(&bench, &["10.0.0.31:80", "10.0.0.32:80"]),
        [true, false]
    );
    // The same again, and one too many; a duplicate counts once.
    assert_eq!(bench.table.set_addresses(&many), 1);
    assert_eq!(
        ours(&bench, &["10.0.0.31:80", "10.0.0.32:80"]),
        [true, false]
    );
    assert_eq!(bench.table.set_addresses(&many[1..]), 0);
    assert_eq!(
        ours(&bench, &["10.0.0.0:80", "10.0.0.1:80", "10.0.0.32:80"]),
        [false, true, true]
    );
    assert_eq!(set(&bench, &["10.0.0.1", "10.0.0.1"]), 0);
    assert_eq!(ours(&bench, &["10.0.0.1:80", "10.0.0.2:80"]), [true, false]);
    assert_eq!(set(&bench, &[]), 0);
    assert_eq!(ours(&bench, &["10.0.0.1:80"]), [false]);
}

#[test]
fn opening_a_table_clears_it() {
    let Some(bench) = Bench::serving(&["10.0.0.1:80"]) else {
        return;
    };
    assert_eq!(ours(&bench, &["10.0.0.1:80"]), [true]);
    let again = bench.rules.table().unwrap();
    assert_eq!(ours(&bench, &["10.0.0.1:80"]), [false]);
    again.set_addresses(&["10.0.0.1".parse().unwrap()]);
    assert_eq!(ours(&bench, &["10.0.0.1:80"]), [false]);
    again.serve(of_tcp("10.0.0.1:80"), true);
    assert_eq!(ours(&bench, &["10.0.0.1:80"]), [true]);
}

#[test]
fn inheriting_a_table_keeps_what_it_serves() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let targets = ["10.0.0.1:80", "10.0.0.1:81", "[fd00::1]:80", "10.0.0.2:81"];
    set(&bench, &["10.0.0.1", "fd00::1"]);
    bench.table.serve(of_tcp("0.0.0.0:80"), true);
    bench.table.serve(of_tcp("[::]:80"), true);
    bench.table.serve(of_tcp("0.0.0.0:81"), true);
    let heir = Table::inherit(bench.descriptors()).unwrap();
    assert_eq!(ours(&bench, &targets), [true, true, true, false]);
    heir.serve(of_tcp("0.0.0.0:80"), true);
    heir.serve(of_tcp("[::]:80"), true);
    heir.serve(of_tcp("0.0.0.0:80"), false);
    let [one, two] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
    assert_eq!(
        heir.set_addresses(&["fd00::1".parse().unwrap(), two, one]),
        0
    );
    // An heir cannot give up what is kept, and new addresses do not get it.
    assert_eq!(ours(&bench, &targets), [true, true, true, false]);
    heir.forget_kept();
    assert_eq!(ours(&bench, &targets), [false, false, true, false]);
    heir.serve(of_tcp("0.0.0.0:81"), true);
    assert_eq!(ours(&bench, &targets), [false, true, true, true]);
    // An address that is removed and added again comes back without what was kept of it.
    let heir = Table::inherit(bench.descriptors()).unwrap();
    heir.set_addresses(&[two]);
    heir.set_addresses(&[one, two]);
    assert_eq!(ours(&bench, &targets), [false, false, false, true]);
}

#[test]
fn inheriting_a_table_tells_whether_the_owner_had_a_successor() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let is_known = |expected: bool| {
        let heir = Table::inherit(bench.descriptors()).unwrap();
        assert_eq!(heir.has_successor(), expected);
    };
    is_known(false);
    bench.table.set_has_successor(true);
    is_known(true);
    bench.table.set_has_successor(false);
    is_known(false);
}

#[test]
fn a_service_begins_when_all_sharers_have_asked_for_it() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1"]);
    let targets = ["10.0.0.1:80", "10.0.0.1:81"];
    let other = bench.table.clone();
    bench.table.set_sharers(2);
    bench.table.serve(of_tcp("0.0.0.0:80"), true);
    assert_eq!(ours(&bench, &targets), [false, false]);
    other.serve(of_tcp("0.0.0.0:80"), true);
    assert_eq!(ours(&bench, &targets), [true, false]);
    // SYNs pass to the kernel as soon as one of them stops listening.
    other.serve(of_tcp("0.0.0.0:80"), false);
    assert_eq!(ours(&bench, &targets), [false, false]);
    bench.table.serve(of_tcp("0.0.0.0:80"), false);
    assert_eq!(ours(&bench, &targets), [false, false]);
}

#[test]
fn ports_for_outgoing_connections_are_open_at_every_address() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1"]);
    bench.table.set_sharers(2);
    let targets = [
        "10.0.0.1:80",
        "10.0.0.1:10240",
        "10.0.0.2:10240",
        "[fd00::1]:10240",
    ];
    bench.table.share_opened(Arc::new(opened([])));
    bench.table.open_ports(Iterator::collect);
    bench
        .table
        .clone()
        .open_ports(|_| panic!("the ports are open already"));
    assert_eq!(ours(&bench, &targets), [false, true, false, false]);
    set(&bench, &["10.0.0.2", "fd00::1"]);
    assert_eq!(ours(&bench, &targets), [false, false, true, true]);
    // A listener that opens and closes leaves them open.
    for on in [true, true, false, false] {
        bench.table.serve(of_tcp("0.0.0.0:10240"), on);
        assert_eq!(ours(&bench, &targets), [false, false, true, true]);
    }
}

/// Ports that are opened in these tables.
fn opened<const COUNT: usize>(tables: [&OwnedFd; COUNT]) -> OpenedPorts {
    OpenedPorts::of(tables.into_iter(), 10240..=32767).unwrap()
}

/// What a partition's table does with frames. Its worker opens no connections; that of another one does so with `open`.
fn beside(check: impl FnOnce(&Bench, &mut dyn FnMut())) {
    let (Some(bench), Some(other)) = (Bench::new(), Bench::new()) else {
        return;
    };
    let [[own, _], [others, _]] = [bench.descriptors(), other.descriptors()];
    let opened = Arc::new(opened([&own, &others]));
    other.table.share_opened(Arc::clone(&opened));
    bench.table.share_opened(opened);
    check(&bench, &mut || other.table.open_ports(Iterator::collect));
}

#[test]
fn ports_that_another_partition_opens_are_open_at_once() {
    beside(|bench, open| {
        set(bench, &["10.0.0.1"]);
        let targets = ["10.0.0.1:80", "10.0.0.1:10240", "10.0.0.2:10240"];
        assert_eq!(ours(bench, &targets), [false; 3]);
        open();
        assert_eq!(ours(bench, &targets), [false, true, false]);
        // Addresses that come later have them too, and a listener that closes leaves them.
        set(bench, &["10.0.0.2"]);
        assert_eq!(ours(bench, &targets), [false, false, true]);
        for on in [true, false] {
            bench.table.serve(of_tcp("0.0.0.0:10240"), on);
            assert_eq!(ours(bench, &targets), [false, false, true]);
        }
        let opened = bench.table.opened();
        assert!(opened.contains(10240) && !opened.contains(80));
    });
}

#[test]
fn ports_that_another_partition_has_opened_are_open_at_the_first_address() {
    beside(|bench, open| {
        open();
        set(bench, &["10.0.0.1"]);
        let targets = ["10.0.0.1:10240", "10.0.0.1:80"];
        assert_eq!(ours(bench, &targets), [true, false]);
    });
}

#[test]
fn ports_are_opened_at_a_partition_whose_owner_is_another_process() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1"]);
    let [table, _] = bench.descriptors();
    let others = opened([&table]);
    others.open(|_| vec![10240]);
    others.open(|_| panic!("the ports are open already"));
    let targets = ["10.0.0.1:10240", "10.0.0.1:10241", "10.0.0.2:10240"];
    assert_eq!(ours(&bench, &targets), [true, false, false]);
    // Its owner does not know of them until it is told.
    set(&bench, &["10.0.0.2"]);
    assert_eq!(ours(&bench, &targets), [false; 3]);
    bench.table.share_opened(Arc::new(opened([])));
    bench.table.open_ports(|_| vec![10240]);
    assert_eq!(ours(&bench, &targets), [false, false, true]);
}

#[test]
fn a_process_that_is_told_of_ports_keeps_those_that_its_predecessor_had_open() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1"]);
    bench.table.share_opened(Arc::new(opened([])));
    bench.table.open_ports(|_| vec![10240]);
    for is_told in [true, false] {
        let heir = Table::inherit(bench.descriptors()).unwrap();
        heir.share_opened(Arc::new(opened([])));
        if is_told {
            heir.open_ports(|_| vec![10240]);
        }
        heir.forget_kept();
        assert_eq!(ours(&bench, &["10.0.0.1:10240"]), [is_told]);
    }
}

#[test]
fn where_another_process_listens_is_brought_until_none_listens_there() {
    let Some(bench) = Bench::new() else {
        return;
    };
    set(&bench, &["10.0.0.1", "fd00::1"]);
    bench.table.serve(of_tcp("10.0.0.1:81"), true);
    let [table, _] = bench.descriptors();
    let others = opened([&table]);
    others.open(|_| (10240..=12000).collect());
    let targets = [
        "10.0.0.1:80",
        "[fd00::1]:80",
        "10.0.0.1:81",
        "10.0.0.1:10240",
    ];
    assert_eq!(ours(&bench, &targets), [false, false, true, true]);
    let before = bench.table.kernel_flows();
    others.listen("0.0.0.0:80".parse().unwrap());
    others.listen("[fd00::1]:80".parse().unwrap());
    assert_eq!(ours(&bench, &targets), [true; 4]);
    // The kernel's connections at these ports are looked up, whatever the owner knew before.
    let asked = bench.table.kernel_flows().unwrap();
    assert_ne!(Some(asked), before);
    others.listen("10.0.0.1:80".parse().unwrap());
    bench.table.end_kernel_flows(asked);
    assert!(
        bench.table.kernel_flows().is_some(),
        "another one has asked"
    );
    // All that listen at any address of IPv4.
    let at = |text: &str| -> SocketAddr { text.parse().unwrap() };
    others.close_unlistened(|address| [at("0.0.0.0:80"), at("10.0.0.1:81")].contains(&address));
    assert_eq!(ours(&bench, &targets), [true, false, true, true]);
    others.close_unlistened(|address| address == at("[::]:80"));
    assert_eq!(ours(&bench, &targets), [true, false, false, true]);
    others.close_unlistened(|_| false);
    assert_eq!(ours(&bench, &targets), [false, false, false, true]);
    // Connections of the ended listener go on.
    let segment = Frame {
        flags: ACK,
        ..tcp("9.9.9.9:9", "10.0.0.1:80")
    };
    assert_eq!(bench.fate(&segment.bytes()), Fate::Ours);
    // One that begins while it is looked whether any listens.
    others.listen(at("10.0.0.1:80"));
    let mut looks = 0;
    others.close_unlistened(|address| {
        looks += 1;
        address.port() == 80 && looks > 3
    });
    assert_eq!(ours(&bench, &targets), [true, false, false, true]);
}

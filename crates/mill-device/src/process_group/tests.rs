//! Members come and go, and each flow is of one of them.

use super::*;

fn table(memory: &File, own: u64, partitions: usize) -> GroupTable {
    GroupTable::open(memory, own, partitions, || panic!("there is room")).unwrap()
}

fn tables(memory: &File, count: u64, partitions: usize) -> Vec<GroupTable> {
    (1..=count)
        .map(|own| table(memory, own, partitions))
        .collect()
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// Flows from so many ports.
fn flows(count: u16) -> impl Iterator<Item = Flow> {
    (0..count).map(|port| {
        Flow::new(
            address("10.0.0.1:80"),
            SocketAddr::new([10, 0, 0, 2].into(), 1024 + port),
        )
    })
}

/// Whether it is not another process's.
fn takes(table: &mut GroupTable, at: &str, flow: &Flow) -> bool {
    !matches!(table.taker(address(at), flow, true, &[]), Taker::Another(_))
}

/// The numbers of the processes that take a flow.
fn takers(tables: &mut [GroupTable], at: &str, flow: &Flow) -> Vec<u64> {
    let takes = tables
        .iter_mut()
        .filter_map(|table| takes(table, at, flow).then_some(table.own));
    takes.collect()
}

#[test]
fn each_flow_is_of_one_member_and_all_have_as_many() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 5, 1);
    for table in &mut tables {
        table.join(address("0.0.0.0:80"));
    }
    let mut counts = [0; 6];
    for flow in flows(5000) {
        let takers = takers(&mut tables, "0.0.0.0:80", &flow);
        let [taker] = takers[..] else {
            panic!("{takers:?}")
        };
        counts[usize::try_from(taker).unwrap()] += 1;
    }
    assert!(
        counts[1..].iter().all(|count| (800..1200).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn as_many_members_as_partitions_take_what_comes_to_each() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 3, 3);
    for table in &mut tables {
        table.join(address("[::]:80"));
    }
    for flow in flows(50) {
        assert_eq!(takers(&mut tables, "[::]:80", &flow), [1, 2, 3]);
    }
}

#[test]
fn one_that_leaves_gives_its_flows_to_others_and_they_keep_theirs() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 4, 1);
    let at = "0.0.0.0:80";
    for table in &mut tables {
        table.join(address(at));
    }
    let before: Vec<Vec<u64>> = flows(1000)
        .map(|flow| takers(&mut tables, at, &flow))
        .collect();
    tables[1].leave(address(at));
    for (flow, before) in flows(1000).zip(before) {
        let after = takers(&mut tables, at, &flow);
        match before[..] {
            [2] => assert!(after.len() == 1 && after != [2], "{after:?}"),
            _ => assert_eq!(after, before),
        }
    }
}

#[test]
fn one_that_has_left_takes_what_has_no_other_member() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 2, 1);
    let at = "0.0.0.0:80";
    let flow = flows(1).next().unwrap();
    assert_eq!(takers(&mut tables, at, &flow), [1, 2]);
    tables[0].join(address(at));
    assert_eq!(takers(&mut tables, at, &flow), [1]);
    tables[0].leave(address(at));
    assert_eq!(takers(&mut tables, at, &flow), [1, 2]);
}

#[test]
fn listeners_at_other_addresses_are_other_groups() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 2, 1);
    for (table, at) in tables.iter_mut().zip(["0.0.0.0:80", "[::]:80"]) {
        table.join(address(at));
    }
    for flow in flows(50) {
        assert_eq!(takers(&mut tables, "0.0.0.0:80", &flow), [1]);
        assert_eq!(takers(&mut tables, "[::]:80", &flow), [2]);
    }
}

#[test]
fn a_process_with_two_listeners_at_an_address_is_one_member_until_both_are_closed() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 2, 1);
    let at = "0.0.0.0:80";
    tables[0].join(address(at));
    tables[0].join(address(at));
    tables[1].join(address(at));
    let owners = |tables: &mut [GroupTable]| -> Vec<Vec<u64>> {
        flows(200).map(|flow| takers(tables, at, &flow)).collect()
    };
    let before = owners(&mut tables);
    assert!(before.contains(&vec![1]) && before.contains(&vec![2]));
    tables[0].leave(address(at));
    assert_eq!(owners(&mut tables), before);
    tables[0].leave(address(at));
    assert!(owners(&mut tables).iter().all(|takers| *takers == [2]));
}

#[test]
fn a_process_that_has_ended_is_removed_from_all_groups() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 3, 1);
    for at in ["0.0.0.0:80", "[::]:80"] {
        for table in &mut tables {
            table.join(address(at));
        }
    }
    let keeper = table(&memory, 0, 1);
    keeper.release(1);
    for flow in flows(50) {
        for at in ["0.0.0.0:80", "[::]:80"] {
            let takers = takers(&mut tables[1..], at, &flow);
            assert_eq!(takers.len(), 1, "{takers:?}");
        }
    }
    // Its places are others'.
    let used = keeper.shared.pairs().count();
    tables[1].join(address("0.0.0.0:81"));
    assert_eq!(keeper.shared.pairs().count(), used);
}

#[test]
fn a_listener_without_room_is_told_of_and_in_no_group() {
    let memory = GroupTable::create().unwrap();
    let mut full = 0;
    let told = std::sync::Arc::new(AtomicU64::new(0));
    let counted = std::sync::Arc::clone(&told);
    let count = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    let mut first = GroupTable::open(&memory, 1, 1, count).unwrap();
    for _ in 0..SLOTS + 2 {
        first.join(address("0.0.0.0:80"));
        full += 1;
    }
    assert_eq!(full - SLOTS, 2);
    assert_eq!(told.load(Ordering::Relaxed), 2);
}

#[test]
fn connections_that_have_departed_are_known_to_all_and_no_others() {
    let memory = GroupTable::create().unwrap();
    let tables = tables(&memory, 2, 1);
    let keeper = table(&memory, 0, 1);
    let entry = |flow: Flow| ledger::Entry {
        local: flow.local(),
        remote: flow.remote(),
        snd_nxt: 0,
        rcv_nxt: 0,
    };
    keeper.note_departed(&flows(100).map(entry).collect::<Vec<_>>());
    for table in &tables {
        let known = flows(100).filter(|flow| table.has_departed(flow)).count();
        // The later one of two of the same place is.
        assert!((90..=100).contains(&known), "{known}");
        assert!(!flows(1000).skip(100).any(|flow| table.has_departed(&flow)));
    }
}

#[test]
fn a_connection_has_departed_for_some_seconds_only() {
    let memory = GroupTable::create().unwrap();
    let table = table(&memory, 1, 1);
    let flow = flows(1).next().unwrap();
    let (place, hash) = table.departed_place(&flow);
    for (ago, expected) in [(0, true), (1, true), (DEPARTED_SECONDS + 2, false)] {
        place.store(
            hash | (second().wrapping_sub(ago) & SECOND_MASK),
            Ordering::Relaxed,
        );
        assert_eq!(table.has_departed(&flow), expected, "{ago}");
    }
}

#[test]
fn a_flow_of_a_departed_connection_that_is_opened_anew_is_that_of_the_new_one() {
    let memory = GroupTable::create().unwrap();
    let mut table = table(&memory, 1, 1);
    let [flow, other] = [0, 1].map(|place| flows(2).nth(place).unwrap());
    let entry = |flow: Flow| ledger::Entry {
        local: flow.local(),
        remote: flow.remote(),
        snd_nxt: 0,
        rcv_nxt: 0,
    };
    table.note_departed(&[entry(flow), entry(other)]);
    table.note_given(flow.local(), &flow, Taker::This);
    assert!(!table.has_departed(&flow));
    assert!(table.has_departed(&other));
}

#[test]
fn members_that_can_t_be_reached_are_passed_over() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 3, 1);
    let at = address("0.0.0.0:80");
    for table in &mut tables[1..] {
        table.join(at);
    }
    let mut counts = [0; 4];
    for flow in flows(200) {
        let Taker::Another(first) = tables[0].taker(at, &flow, true, &[]) else {
            panic!("it does not listen itself");
        };
        counts[usize::try_from(first).unwrap()] += 1;
        let other = 5 - first;
        let next = tables[0].taker(at, &flow, true, &[first]);
        assert_eq!(next, Taker::Another(other));
        let none = tables[0].taker(at, &flow, true, &[first, other]);
        assert_eq!(none, Taker::None);
        tables[0].join(at);
        let own = tables[0].taker(at, &flow, true, &[first, other]);
        assert_eq!(own, Taker::This);
        tables[0].leave(at);
    }
    assert!(counts[2] > 0 && counts[3] > 0, "{counts:?}");
}

#[test]
fn a_group_much_larger_than_the_processors_is_served_by_those_with_a_partition() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 12, 1);
    let at = "0.0.0.0:80";
    for table in &mut tables {
        table.sharing_max = 10;
        table.join(address(at));
    }
    let flow = flows(1).next().unwrap();
    let all: Vec<u64> = (1..=12).collect();
    assert_eq!(takers(&mut tables, at, &flow), all);
    // One that has left gives all to the others.
    tables[0].leave(address(at));
    assert_eq!(takers(&mut tables, at, &flow), all[1..]);
    tables[1].leave(address(at));
    let [taker] = takers(&mut tables, at, &flow)[..] else {
        panic!("ten are not too many");
    };
    assert!(taker > 2);
}

fn load(accepted: u32, waiting: u32) -> Load {
    Load {
        accepted,
        waiting,
        half_open: 0,
        is_neglected: false,
    }
}

#[test]
fn a_connection_goes_to_an_idle_one_of_those_that_serve_one_at_a_time() {
    // As many as partitions, more, and many more.
    for (count, partitions) in [(3, 3), (3, 1), (100, 1)] {
        let memory = GroupTable::create().unwrap();
        let mut tables = tables(&memory, count, partitions);
        let at = address("0.0.0.0:80");
        for table in &mut tables {
            table.join(at);
        }
        let mut idle: std::collections::BTreeSet<u64> = (1..=count).collect();
        for flow in flows(u16::try_from(count).unwrap()) {
            let found = match tables[0].taker(at, &flow, true, &[]) {
                Taker::This => 1,
                Taker::Another(process) => process,
                Taker::None => 0,
            };
            assert!(idle.remove(&found), "{found} of {count} has one");
            let place = usize::try_from(found - 1).unwrap();
            tables[place].note_load(
                at,
                load(u32::from(found % 2 == 0), u32::from(found % 2 != 0)),
            );
        }
        // All have one: the fewest decide among more.
        for table in &mut tables[1..] {
            table.note_load(at, load(1, 1));
        }
        tables[0].note_load(at, load(1, 0));
        let flow = flows(1).next().unwrap();
        assert_eq!(tables[1].taker(at, &flow, true, &[]), Taker::Another(1));
        let other = tables[1].taker(at, &flow, true, &[1]);
        assert!(other != Taker::Another(1) && other != Taker::None);
    }
}

#[test]
fn members_that_serve_several_connections_at_a_time_or_have_very_many_get_them_by_the_hash() {
    let at = address("0.0.0.0:80");
    for busy in [load(2, 0), load(0, 8), load(1, 1000)] {
        let memory = GroupTable::create().unwrap();
        let mut tables = tables(&memory, 4, 1);
        for table in &mut tables {
            table.join(at);
        }
        let takers = |tables: &mut [GroupTable]| -> Vec<Vec<u64>> {
            let text = "0.0.0.0:80";
            flows(100).map(|flow| takers(tables, text, &flow)).collect()
        };
        let before = takers(&mut tables);
        for table in &mut tables[1..] {
            table.note_load(at, busy);
        }
        // One that is known to serve several does so from then on.
        if busy.accepted == 2 {
            for table in &mut tables {
                table.note_load(at, load(1, 0));
            }
        } else {
            tables[0].note_load(at, busy);
        }
        assert_eq!(takers(&mut tables), before);
    }
}

#[test]
fn a_burst_goes_to_all_idle_members_before_they_have_told_of_it() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 12, 1);
    let at = address("0.0.0.0:80");
    for table in &mut tables {
        table.join(at);
    }
    let mut counts = [0; 13];
    // Twice as many: a member that is stopped has no more than the others.
    for flow in flows(24) {
        let taker = tables[0].taker(at, &flow, true, &[]);
        tables[0].note_given(at, &flow, taker);
        let again = tables[0].taker(at, &flow, true, &[]);
        assert_eq!(again, taker, "a SYN that is sent again");
        let found = match taker {
            Taker::This => 1,
            Taker::Another(process) => usize::try_from(process).unwrap(),
            Taker::None => 0,
        };
        counts[found] += 1;
    }
    assert_eq!(counts[1..], [2; 12]);
    // What is no SYN goes where it would without loads: of so many members it stays where it is.
    for flow in flows(50) {
        assert_eq!(tables[1].taker(at, &flow, false, &[]), Taker::This);
    }
}

#[test]
fn listeners_of_one_process_at_one_address_tell_one_load() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 2, 1);
    let at = address("0.0.0.0:80");
    tables[0].join(at);
    tables[0].join(at);
    tables[1].join(at);
    tables[0].note_load(at, load(1, 2));
    for flow in flows(50) {
        assert_eq!(tables[1].taker(at, &flow, true, &[]), Taker::This);
    }
    // One that goes leaves the other's slot, and another process's as it is.
    tables[0].leave(at);
    tables[0].note_load(at, load(0, 0));
    tables[1].note_load(at, load(1, 0));
    for flow in flows(50) {
        assert_eq!(tables[1].taker(at, &flow, true, &[]), Taker::Another(1));
    }
    tables[0].leave(at);
    tables[0].leave(at);
    let flow = flows(1).next().unwrap();
    assert_eq!(tables[0].taker(at, &flow, true, &[]), Taker::Another(2));
}

#[test]
fn handshakes_that_may_never_end_make_none_busier_than_a_connection() {
    let memory = GroupTable::create().unwrap();
    let mut tables = tables(&memory, 3, 1);
    let at = address("0.0.0.0:80");
    for (table, half_open) in tables.iter_mut().zip([0, 3, 2]) {
        table.join(at);
        let accepted = u32::from(half_open == 0);
        let load = Load {
            half_open,
            ..load(accepted, 0)
        };
        table.note_load(at, load);
    }
    for flow in flows(50) {
        assert_ne!(tables[0].taker(at, &flow, true, &[]), Taker::This);
    }
}

#[test]
fn connections_go_past_members_that_neglect_them_as_long_as_others_look() {
    // As many as partitions, and more.
    for partitions in [4, 1] {
        let memory = GroupTable::create().unwrap();
        let mut tables = tables(&memory, 4, partitions);
        let at = "0.0.0.0:80";
        for table in &mut tables {
            table.join(address(at));
        }
        let before: Vec<_> = flows(100).map(|it| takers(&mut tables, at, &it)).collect();
        let neglect = |table: &mut GroupTable, is_neglected| {
            let load = Load {
                is_neglected,
                ..load(3, 2)
            };
            table.note_load(address(at), load);
        };
        for table in &mut tables[..2] {
            neglect(table, true);
            assert_ne!(table.others(address(at)).idle, 0);
        }
        for flow in flows(100) {
            let takers = takers(&mut tables, at, &flow);
            assert!(takers.iter().all(|it| *it > 2), "{takers:?}");
        }
        neglect(&mut tables[2], true);
        tables[3].note_load(address(at), load(0, 1));
        let busy = Others {
            count: 1,
            ..Others::default()
        };
        assert_eq!(tables[2].others(address(at)), busy);
        assert_eq!(tables[3].others(address(at)), Others::default());
        // Where none looks all are as they were, and so they are once all look again.
        neglect(&mut tables[3], true);
        for is_neglected in [true, false] {
            for table in &mut tables {
                neglect(table, is_neglected);
            }
            let now: Vec<_> = flows(100).map(|it| takers(&mut tables, at, &it)).collect();
            assert_eq!(now, before);
        }
    }
}

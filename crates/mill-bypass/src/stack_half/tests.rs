//! The calls to the link when listeners open and close.

use super::*;
use crate::file_bytes::NoFile;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use mill_stack::config::{HostConfig, Prefix, Route};
use mill_stack::flow_directory::FlowDirectory;
use mill_stack::host::Host;
use mill_stack::host::tables::NextNumbers;
use mill_stack::link::{
    Burst, ExternalBytes, ExternalSent, FlowSteering, FrameId, Link, LinkChange, LinkLedger,
    LinkMonitor, LinkProperties, Offload, Received, Stray,
};
use mill_stack::memory_link::MemoryLink;
use mill_stack::polling::Polling;
use mill_stack::queue::ByteQueue;
use mill_wire::seq::SeqNumber;
use mill_wire::tcp::{Flags, TcpHeader};

/// A link that records the calls made to it.
struct RecordingLink {
    link: MemoryLink,
    told: Vec<String>,
    /// Slots as they were noted, with the far end of what is there.
    noted: Vec<(u32, Option<SocketAddr>)>,
    left: Vec<NextNumbers>,
}

impl Link for RecordingLink {
    fn properties(&self) -> &LinkProperties {
        self.link.properties()
    }

    fn receive(&mut self, burst: &mut Burst) {
        self.link.receive(burst);
    }

    fn frame(&mut self, id: FrameId) -> &mut [u8] {
        self.link.frame(id)
    }

    fn release(&mut self, id: FrameId) {
        self.link.release(id);
    }

    fn reserve(&mut self, len_max: usize) -> Option<&mut [u8]> {
        self.link.reserve(len_max)
    }

    fn transmit(&mut self, len: usize, offload: Offload) {
        self.link.transmit(len, offload);
    }

    fn transmit_external(
        &mut self,
        len: usize,
        offload: Offload,
        payload: ExternalBytes<'_>,
    ) -> ExternalSent {
        self.link.transmit_external(len, offload, payload)
    }

    fn flush(&mut self) -> bool {
        false
    }

    fn hand_over(&mut self, frame: &Received, stray: &Stray<'_>) -> bool {
        self.link.hand_over(frame, stray)
    }
}

impl FlowSteering for RecordingLink {
    fn serve(&mut self, service: Service, on: bool) {
        let word = if on { "serve" } else { "stop" };
        self.told.push(alloc::format!("{word} {}", service.address));
    }

    fn retire(&mut self, service: Service) {
        self.told.push(alloc::format!("retire {}", service.address));
    }

    fn forget(&mut self, service: Service) {
        self.told.push(alloc::format!("forget {}", service.address));
    }

    fn open_ports(&mut self) {
        self.told.push(String::from("open"));
    }

    fn set_blocked(&mut self, addresses: &[IpAddr]) {
        self.told.push(alloc::format!("block {addresses:?}"));
    }

    fn brings(&self, _remote: SocketAddr, _local_port: u16) -> bool {
        true
    }
}

impl LinkMonitor for RecordingLink {
    fn resolve(&mut self, _address: IpAddr) {}

    fn take_changes(&mut self, _into: &mut Vec<LinkChange>) {}

    fn flow_directory(&mut self) -> Option<Box<dyn FlowDirectory>> {
        None
    }

    fn change_places(&mut self) {}
}

impl LinkLedger for RecordingLink {
    fn has_ledger(&self) -> bool {
        true
    }

    fn note(&mut self, slot: u32, numbers: Option<NextNumbers>) {
        let remote = numbers.map(|numbers| numbers.flow.remote());
        self.noted.push((slot, remote));
    }

    fn take_left(&mut self) -> Vec<NextNumbers> {
        core::mem::take(&mut self.left)
    }
}

fn at(millis: u64) -> Instant {
    Instant::from_nanos((1_000_000 + millis) * 1_000_000)
}

/// A stack on an interface that the kernel uses too.
fn stack_half() -> StackHalf<RecordingLink, NoFile> {
    heir_of(Vec::new())
}

/// The same after a process was killed that had these connections.
fn heir_of(left: Vec<NextNumbers>) -> StackHalf<RecordingLink, NoFile> {
    stack_half_with(Neighboring::Kernel, left)
}

fn stack_half_with(
    neighbors: Neighboring,
    left: Vec<NextNumbers>,
) -> StackHalf<RecordingLink, NoFile> {
    let prefix = Prefix {
        address: IpAddr::from([10, 0, 0, 1]),
        len: 24,
    };
    let mut host = HostConfig::new(vec![prefix], [1; 16]);
    host.neighbors = neighbors;
    host.limits.burst_max = 8;
    // Hosts in the network are reached without a gateway.
    host.routes = vec![Route::on_link(prefix)];
    let link = RecordingLink {
        link: MemoryLink::new(LinkProperties {
            cut_bytes_min: 0,
            sends_external: false,
            frames_per_turn: 16,
            ..*MemoryLink::ethernet(1).properties()
        }),
        told: Vec::new(),
        noted: Vec::new(),
        left,
    };
    let options = StackOptions {
        polling: Polling::Interrupt,
        ..StackOptions::new(link, host)
    };
    StackHalf::new(options, at(0))
}

fn options() -> ListenOptions {
    ListenOptions::new(Address::Ip("0.0.0.0:80".parse().unwrap()))
}

fn told(stack_half: &StackHalf<RecordingLink, NoFile>) -> Vec<String> {
    core::mem::take(&mut stack_half.stack.borrow_mut().link.told)
}

fn turn(stack_half: &StackHalf<RecordingLink, NoFile>, millis: u64) {
    let mut events = Events::default();
    stack_half.receive(at(millis), || at(millis), &mut events);
}

#[test]
fn a_listener_that_is_to_be_closed_accepts_connections_on_their_way() {
    let stack_half = stack_half();
    let listener = stack_half.listen(&options()).unwrap().unwrap();
    assert_eq!(told(&stack_half), ["serve 0.0.0.0:80"]);
    assert!(!stack_half.drain_listener(listener));
    assert!(!stack_half.drain_listener(listener));
    assert_eq!(told(&stack_half), ["stop 0.0.0.0:80"]);
    let wait = stack_half.wait(Park::Forever, || at(0));
    assert_eq!(wait, Wait::Inner(Park::Until(at(2))));
    turn(&stack_half, 1);
    assert!(!stack_half.drain_listener(listener));
    turn(&stack_half, 2);
    assert!(stack_half.drain_listener(listener));
    stack_half.close_listener(listener);
    turn(&stack_half, 900);
    assert!(told(&stack_half).is_empty());
    turn(&stack_half, 1000);
    assert_eq!(told(&stack_half), ["forget 0.0.0.0:80"]);
    turn(&stack_half, 5000);
    assert!(told(&stack_half).is_empty());
}

/// A handshake begins at the stack; the client's last acknowledgement is under way.
fn begin_handshake(
    stack_half: &StackHalf<RecordingLink, NoFile>,
    client: &mut Host<ByteQueue>,
    link: &mut MemoryLink,
) {
    client
        .connect("10.0.0.1:80".parse().unwrap(), None, true, 7)
        .unwrap();
    // The client asks for the Ethernet address, then sends its SYN.
    for _ in 0..2 {
        client.transmit(link, to_stack(at(0)));
        client.settle(link);
        link.carry(&mut stack_half.stack.borrow_mut().link.link);
        turn(stack_half, 0);
        stack_half.stack.borrow_mut().settle(at(0));
        let mut stack = stack_half.stack.borrow_mut();
        stack.link.link.carry(link);
        client.receive(link, to_stack(at(0)));
    }
    client.transmit(link, to_stack(at(0)));
    client.settle(link);
}

#[test]
fn a_listener_of_an_address_that_the_kernel_has_not_waits_for_handshakes_only() {
    let stack_half = stack_half_with(Neighboring::Own, Vec::new());
    let listener = stack_half.listen(&options()).unwrap().unwrap();
    assert!(stack_half.drain_listener(listener), "none is under way");
    stack_half.keep_listener(listener);

    let mut link = MemoryLink::ethernet(2);
    let prefix = Prefix {
        address: IpAddr::from([10, 0, 0, 2]),
        len: 24,
    };
    let config = HostConfig::new(vec![prefix], [2; 16]);
    let mut client = Host::new(config, link.properties(), to_stack(at(0)));
    begin_handshake(&stack_half, &mut client, &mut link);
    let half_open = || stack_half.stack.borrow().host.half_open(listener);
    assert_eq!(half_open(), 1);
    assert!(!stack_half.drain_listener(listener));
    link.carry(&mut stack_half.stack.borrow_mut().link.link);
    turn(&stack_half, 1);
    assert_eq!(half_open(), 0);
    assert!(stack_half.drain_listener(listener));
    assert_eq!(stack_half.stack.borrow().host.waiting(listener), 1);
}

#[test]
fn ports_are_opened_with_the_first_connection_of_this_process() {
    let stack_half = stack_half();
    turn(&stack_half, 1);
    assert!(told(&stack_half).is_empty());
    for expected in [&["open"][..], &[]] {
        let target = "10.0.0.2:9".parse().unwrap();
        let task = TaskId::from_bits(7);
        let opened = stack_half.connect(target, &ConnectOptions::default(), task);
        assert!(opened.is_ok());
        assert_eq!(told(&stack_half), expected);
    }
}

#[test]
fn a_listener_that_is_kept_after_all_serves_again() {
    let stack_half = stack_half();
    let listener = stack_half.listen(&options()).unwrap().unwrap();
    assert!(!stack_half.drain_listener(listener));
    stack_half.keep_listener(listener);
    let expected = ["serve 0.0.0.0:80", "stop 0.0.0.0:80", "serve 0.0.0.0:80"];
    assert_eq!(told(&stack_half), expected);
    turn(&stack_half, 5000);
    assert!(told(&stack_half).is_empty());
    assert!(!stack_half.drain_listener(listener), "it begins anew");
    assert_eq!(told(&stack_half), ["stop 0.0.0.0:80"]);
}

#[test]
fn a_port_is_forgotten_when_its_last_connection_has_ended() {
    let stack_half = stack_half();
    let listener = stack_half.listen(&options()).unwrap().unwrap();
    let (target, own) = (
        "10.0.0.2:9".parse().unwrap(),
        "10.0.0.1:80".parse().unwrap(),
    );
    let opened = {
        let host = &mut stack_half.stack.borrow_mut().host;
        host.connect(target, Some(own), true, 7).unwrap()
    };
    stack_half.close_listener(listener);
    assert_eq!(told(&stack_half), ["serve 0.0.0.0:80", "stop 0.0.0.0:80"]);
    turn(&stack_half, 1500);
    assert!(told(&stack_half).is_empty());
    stack_half.stack.borrow_mut().host.abort(opened);
    turn(&stack_half, 3000);
    assert_eq!(told(&stack_half), ["forget 0.0.0.0:80"]);
    // A listener that begins before that is served as before.
    let again = stack_half.listen(&options()).unwrap().unwrap();
    stack_half.close_listener(again);
    let again = stack_half.listen(&options()).unwrap().unwrap();
    turn(&stack_half, 6000);
    let expected = ["serve 0.0.0.0:80", "stop 0.0.0.0:80", "serve 0.0.0.0:80"];
    assert_eq!(told(&stack_half), expected);
    stack_half.close_listener(again);
}

#[test]
fn two_listeners_at_a_place_end_with_the_last() {
    let stack_half = stack_half();
    let shared = ListenOptions {
        share: Some(0),
        ..options()
    };
    let Some(Ok(one)) = stack_half.listen(&shared) else {
        panic!("it listens");
    };
    let other = ListenOptions {
        share: Some(1),
        ..options()
    };
    let Some(Ok(other)) = stack_half.listen(&other) else {
        // The stack's own port is not shared.
        return;
    };
    told(&stack_half);
    stack_half.close_listener(one);
    assert!(told(&stack_half).is_empty());
    stack_half.close_listener(other);
    assert_eq!(told(&stack_half), ["stop 0.0.0.0:80"]);
}

#[test]
fn a_turn_takes_no_more_than_its_share_and_the_next_one_follows_at_once() {
    let stack_half = stack_half();
    let mut peer = MemoryLink::ethernet(2);
    for _ in 0..40 {
        assert!(peer.reserve(60).is_some());
        peer.transmit(60, Offload::default());
    }
    peer.carry(&mut stack_half.stack.borrow_mut().link.link);
    let taken = || stack_half.stack.borrow().host.counters().frames_in;
    for expected in [16, 32] {
        turn(&stack_half, 1);
        assert_eq!(taken(), expected);
        assert!(stack_half.stack.borrow().has_more, "after {expected}");
    }
    turn(&stack_half, 1);
    assert_eq!(taken(), 40);
    assert!(!stack_half.stack.borrow().has_more);
}

fn settle(stack_half: &StackHalf<RecordingLink, NoFile>, millis: u64) {
    stack_half.stack.borrow_mut().settle(at(millis));
}

/// The segments that have left since the last call, but for questions of ARP.
fn sent(stack_half: &StackHalf<RecordingLink, NoFile>) -> Vec<TcpHeader> {
    let sent = core::mem::take(&mut stack_half.stack.borrow_mut().link.link.sent);
    let segments = sent.iter().filter_map(|frame| {
        let segment = frame.bytes.get(14 + 20..)?;
        Some(TcpHeader::parse(segment).ok()?.0)
    });
    segments.collect()
}

#[test]
fn peers_of_a_killed_process_are_told_in_parts_and_once_more() {
    let peer: IpAddr = [10, 0, 0, 2].into();
    let own = "10.0.0.1:80".parse().unwrap();
    let left = (1..=200).map(|port| NextNumbers {
        flow: Flow::new(own, SocketAddr::new(peer, port)),
        snd_nxt: SeqNumber(u32::from(port)),
        rcv_nxt: SeqNumber(7),
    });
    let stack_half = heir_of(left.collect());
    let known = LinkChange::Neighbor {
        address: peer,
        mac: Some([2; 6]),
    };
    let start = to_stack(at(0));
    stack_half.stack.borrow_mut().host.on_change(&known, start);
    // A flow that has begun anew is not reset.
    let again = SocketAddr::new(peer, 9);
    let host = |stack: &mut Stack<_, _>| stack.host.connect(again, Some(own), true, 7);
    host(&mut stack_half.stack.borrow_mut()).unwrap();
    for round in [0, 1200] {
        settle(&stack_half, round);
        let first = sent(&stack_half);
        assert!(stack_half.stack.borrow().has_more);
        let reset = first.iter().find(|header| header.target == 128).unwrap();
        assert_eq!((reset.flags, reset.seq), (Flags::RST, SeqNumber(128)));
        settle(&stack_half, round + 1);
        let all: Vec<TcpHeader> = first.into_iter().chain(sent(&stack_half)).collect();
        let of = |flags| all.iter().filter(move |header| header.flags == flags);
        assert_eq!(of(Flags::RST).count(), 199);
        assert_eq!(of(Flags::ACK).count(), 199);
        assert!(of(Flags::ACK).all(|header| header.ack == SeqNumber(7)));
        settle(&stack_half, round + 2);
        assert_eq!(
            sent(&stack_half)
                .iter()
                .filter(|it| it.flags == Flags::RST)
                .count(),
            0
        );
    }
}

#[test]
fn connections_are_noted_while_there_is_something_new_and_the_turn_comes_for_it() {
    let stack_half = stack_half();
    let noted = || core::mem::take(&mut stack_half.stack.borrow_mut().link.noted);
    settle(&stack_half, 0);
    assert_eq!(noted(), []);
    let target = "10.0.0.2:9".parse().unwrap();
    let opened = {
        let host = &mut stack_half.stack.borrow_mut().host;
        let known = LinkChange::Neighbor {
            address: IpAddr::from([10, 0, 0, 2]),
            mac: Some([2; 6]),
        };
        host.on_change(&known, to_stack(at(1)));
        host.connect(target, None, true, 7).unwrap()
    };
    // It is noted in the turn in which it begins; that its SYN has left, a hundredth of a second later.
    settle(&stack_half, 1);
    assert_eq!(noted(), [(0, Some(target))]);
    let until = Park::Until(at(10));
    assert_eq!(
        stack_half
            .stack
            .borrow_mut()
            .wait(Park::Until(at(500)), || at(1)),
        Wait::Inner(until)
    );
    settle(&stack_half, 10);
    assert_eq!(noted(), [(0, Some(target))]);
    // What ends without a frame is noted with the next one.
    stack_half.stack.borrow_mut().host.abort(opened);
    settle(&stack_half, 20);
    assert_eq!(noted(), []);
    let mut peer = MemoryLink::ethernet(2);
    assert!(peer.reserve(60).is_some());
    peer.transmit(60, Offload::default());
    peer.carry(&mut stack_half.stack.borrow_mut().link.link);
    turn(&stack_half, 21);
    settle(&stack_half, 30);
    assert_eq!(noted(), [(0, None)]);
    settle(&stack_half, 40);
    assert_eq!(noted(), []);
}

//! Sockets of datagrams: batches, local address, ECN, segments, errors, readiness, bounded queues.

use crate::content::pattern;
use crate::story::Story;
use crate::{Around, Server, Testbed};
use mill_runtime::datagrams::{
    DatagramEngine, DatagramError, DatagramOptions, DatagramSocket, Ecn, OutgoingDatagram,
    ReceivedDatagram,
};
use mill_runtime::scheduler::Scheduler;
use mill_runtime::spawned::Purpose;
use mill_runtime::tasks::TaskId;
use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU16;
use std::rc::Rc;
use std::task::Poll;

type SocketOf<T> = <<T as Testbed>::Engine as DatagramEngine>::Datagrams;

/// A datagram as it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Received {
    bytes: Vec<u8>,
    remote: SocketAddr,
    local: SocketAddr,
    ecn: Ecn,
}

/// A worker with a task that uses a socket of datagrams, and a peer's socket.
struct Pair<T: Testbed> {
    server: Server<T>,
    /// Where the task's socket receives.
    address: SocketAddr,
    peer: SocketOf<T>,
    heard: Vec<Received>,
}

impl<T: Testbed> Pair<T> {
    /// `work` is what the task does with the socket.
    fn start<F>(work: impl FnOnce(SocketOf<T>, Around<T::Engine>) -> F + 'static) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let server = Server::<T>::start(|_stream, _| async {});
        let options = DatagramOptions::new(SocketAddr::new(server.address.ip(), 0));
        Self::start_on(server, options, work)
    }

    fn start_on<F>(
        mut server: Server<T>,
        options: DatagramOptions,
        work: impl FnOnce(SocketOf<T>, Around<T::Engine>) -> F + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + 'static,
    {
        let bound = Story::default();
        let teller = bound.clone();
        let around = server.around.clone();
        spawn(&server.around.scheduler, async move {
            let task = around.scheduler.current();
            let socket = around.engine.open_datagrams(&options, task).unwrap();
            teller.tell(socket.local());
            work(socket, around).await;
        });
        server.run_until("the socket", || bound.count() == 1);
        let (peers, ip) = server.testbed.peers();
        let options = DatagramOptions::new(SocketAddr::new(ip, 0));
        let peer = peers.open_datagrams(&options, TaskId::NONE).unwrap();
        Self {
            address: bound.told()[0],
            server,
            peer,
            heard: Vec::new(),
        }
    }

    /// Has the peer send all of `batch`.
    fn send(&mut self, mut batch: &[OutgoingDatagram<'_>]) {
        let (server, peer) = (&mut self.server, &self.peer);
        server.run_until("room for what is sent", || {
            if let Poll::Ready(sent) = peer.poll_send(batch) {
                batch = &batch[sent.unwrap()..];
            }
            batch.is_empty()
        });
        self.server.turn();
    }

    /// Turns until the peer has heard so many datagrams.
    fn hear(&mut self, count: usize) {
        let (server, peer, heard) = (&mut self.server, &self.peer, &mut self.heard);
        server.run_until("the datagrams", || {
            hear_some(peer, heard);
            heard.len() >= count
        });
        self.server.run_on();
        hear_some(&self.peer, &mut self.heard);
        assert_eq!(self.heard.len(), count, "no more than these");
    }
}

/// Receives what is here.
fn hear_some(socket: &impl DatagramSocket, heard: &mut Vec<Received>) {
    while let Poll::Ready(received) = socket.poll_receive(16, |datagram| note(heard, datagram)) {
        assert!((1..=16).contains(&received.unwrap()));
    }
}

fn note(heard: &mut Vec<Received>, datagram: ReceivedDatagram<'_>) {
    heard.extend(datagram.segments().map(|bytes| Received {
        bytes: bytes.to_vec(),
        remote: datagram.remote,
        local: datagram.local,
        ecn: datagram.ecn,
    }));
}

fn spawn(scheduler: &Scheduler, future: impl Future<Output = ()> + 'static) -> TaskId {
    let spawned = scheduler.spawn(Purpose::Finishing, future);
    spawned.unwrap_or_else(|_| panic!("few tasks live"))
}

/// Sends each datagram back as it came, from the address that it came to.
async fn echo(socket: impl DatagramSocket) {
    loop {
        let mut heard = Vec::new();
        let received = socket.receive(64, |datagram| note(&mut heard, datagram));
        received.await.unwrap();
        let answers: Vec<_> = heard.iter().map(answer_to).collect();
        send_all(&socket, &answers).await;
    }
}

fn answer_to(received: &Received) -> OutgoingDatagram<'_> {
    OutgoingDatagram {
        local: Some(received.local.ip()),
        ecn: received.ecn,
        ..OutgoingDatagram::new(&received.bytes, received.remote)
    }
}

async fn send_all(socket: &impl DatagramSocket, mut batch: &[OutgoingDatagram<'_>]) {
    while !batch.is_empty() {
        batch = &batch[socket.send(batch).await.unwrap()..];
    }
}

pub fn a_datagram_wakes_the_task_that_waits_and_is_echoed<T: Testbed>() {
    let mut pair = Pair::<T>::start(|socket, _| echo(socket));
    pair.server.run_on();
    for (count, bytes) in [(1, &b"hello"[..]), (2, b""), (3, &pattern(20_000))] {
        pair.send(&[OutgoingDatagram::new(bytes, pair.address)]);
        pair.hear(count);
        let last = pair.heard.last().unwrap();
        assert!(last.bytes == bytes);
        assert_eq!((last.remote, last.local), (pair.address, pair.peer.local()));
    }
    let counters = pair.peer.counters();
    assert_eq!(
        (counters.sent, counters.received, counters.dropped),
        (3, 3, 0)
    );
}

pub fn batches_keep_their_order<T: Testbed>() {
    let mut pair = Pair::<T>::start(|socket, _| echo(socket));
    let numbers: Vec<[u8; 1]> = (0..100).map(|number| [number]).collect();
    let address = pair.address;
    let batch: Vec<_> = numbers
        .iter()
        .map(|number| OutgoingDatagram::new(number, address))
        .collect();
    pair.send(&batch);
    pair.hear(100);
    let heard: Vec<u8> = pair.heard.iter().map(|one| one.bytes[0]).collect();
    assert!(heard.iter().copied().eq(0..100), "{heard:?}");
}

pub fn a_wildcard_socket_knows_where_each_datagram_came_to_and_answers_from_there<T: Testbed>() {
    let server = Server::<T>::start(|_stream, _| async {});
    let options = DatagramOptions::new((Ipv4Addr::UNSPECIFIED, 0).into());
    let mut pair = Pair::<T>::start_on(server, options, |socket, _| echo(socket));
    let addresses = T::addresses(&pair.server);
    for (count, ip) in (1..).zip(addresses) {
        let target = SocketAddr::new(ip, pair.address.port());
        pair.send(&[OutgoingDatagram::new(b"x", target)]);
        pair.hear(count);
        assert_eq!(pair.heard[count - 1].remote, target);
    }
}

pub fn ecn_bits_arrive_as_they_were_sent<T: Testbed>() {
    let all = [
        Ecn::CongestionExperienced,
        Ecn::Capable0,
        Ecn::NotCapable,
        Ecn::Capable1,
    ];
    let mut pair = Pair::<T>::start(|socket, _| echo(socket));
    let address = pair.address;
    let batch = all.map(|ecn| OutgoingDatagram {
        ecn,
        ..OutgoingDatagram::new(b"x", address)
    });
    pair.send(&batch);
    pair.hear(4);
    let heard: Vec<Ecn> = pair.heard.iter().map(|one| one.ecn).collect();
    assert_eq!(heard, all);
}

pub fn a_segmented_send_arrives_as_separate_datagrams<T: Testbed>() {
    let mut pair = Pair::<T>::start(|socket, _| echo(socket));
    let bytes = pattern(10_400);
    let whole = OutgoingDatagram {
        ecn: Ecn::Capable0,
        segment_bytes: NonZeroU16::new(1000),
        ..OutgoingDatagram::new(&bytes, pair.address)
    };
    let behind = OutgoingDatagram::new(b"behind", pair.address);
    pair.send(&[whole, behind]);
    pair.hear(12);
    let (last, segments) = pair.heard.split_last().unwrap();
    assert_eq!(last.bytes, b"behind");
    for (heard, sent) in segments.iter().zip(bytes.chunks(1000)) {
        assert!(heard.bytes == sent && heard.ecn == Ecn::Capable0);
    }
    assert_eq!(pair.peer.counters().sent, 12);
}

pub fn what_is_too_large_is_an_error_and_what_stands_around_it_is_sent<T: Testbed>() {
    let mut pair = Pair::<T>::start(|socket, _| echo(socket));
    let too_large = vec![0; 65_508];
    let address = pair.address;
    let single = OutgoingDatagram::new(&too_large, address);
    let many = OutgoingDatagram {
        segment_bytes: NonZeroU16::new(1),
        ..OutgoingDatagram::new(&too_large[..65], address)
    };
    for (round, too_large) in [single, many].into_iter().enumerate() {
        let before = OutgoingDatagram::new(b"before", address);
        let behind = OutgoingDatagram::new(b"behind", address);
        let batch = [before, too_large, behind];
        assert_eq!(pair.peer.poll_send(&batch), Poll::Ready(Ok(1)));
        let error = Poll::Ready(Err(DatagramError::TooLarge));
        assert_eq!(pair.peer.poll_send(&batch[1..]), error);
        assert_eq!(pair.peer.poll_send(&batch[2..]), Poll::Ready(Ok(1)));
        pair.hear(2 * round + 2);
    }
    assert!(pair.heard.iter().map(|one| one.bytes.as_slice()).eq([
        &b"before"[..],
        b"behind",
        b"before",
        b"behind"
    ]));
}

pub fn an_unreachable_port_refuses_a_socket_with_a_peer_which_goes_on<T: Testbed>() {
    let server = Server::<T>::start(|_stream, _| async {});
    let (peers, ip) = server.testbed.peers();
    let open = |port| {
        let options = DatagramOptions::new(SocketAddr::new(ip, port));
        peers.open_datagrams(&options, TaskId::NONE).unwrap()
    };
    let remote = open(0).local();
    let options = DatagramOptions {
        remote: Some(remote),
        ..DatagramOptions::new(SocketAddr::new(server.address.ip(), 0))
    };
    let story = Story::default();
    let teller = story.clone();
    let mut pair = Pair::<T>::start_on(server, options, move |socket, _| async move {
        let question = [OutgoingDatagram::new(b"question", remote)];
        assert_eq!(socket.send(&question).await, Ok(1));
        teller.tell(socket.receive(1, |_| {}).await);
        assert_eq!(socket.send(&question).await, Ok(1));
        teller.tell(socket.receive(1, |_| {}).await);
        teller.tell(socket.receive(1, |_| {}).await);
    });
    let (server, heard) = (&mut pair.server, &mut pair.heard);
    server.run_until("the refusals", || story.count() == 2);
    assert_eq!(story.told(), [Err(DatagramError::Refused); 2]);
    // The peer is there now; what others send does not reach the socket.
    let late = open(remote.port());
    let word = [OutgoingDatagram::new(b"answer", pair.address)];
    assert_eq!(pair.peer.poll_send(&word), Poll::Ready(Ok(1)));
    server.run_on();
    assert_eq!(story.count(), 2);
    assert_eq!(late.poll_send(&word), Poll::Ready(Ok(1)));
    server.run_until("the answer", || story.count() == 3);
    assert_eq!(story.told()[2], Ok(1));
    hear_some(&late, heard);
    assert_eq!(heard, &[]);
}

pub fn a_receive_queue_is_bounded_and_counts_what_it_drops<T: Testbed>() {
    let server = Server::<T>::start(|_stream, _| async {});
    let options = DatagramOptions {
        receive_buffer_bytes: Some(50_000),
        ..DatagramOptions::new(SocketAddr::new(server.address.ip(), 0))
    };
    let opened: Rc<RefCell<Option<SocketOf<T>>>> = Rc::default();
    let put = Rc::clone(&opened);
    let mut pair = Pair::<T>::start_on(server, options, move |socket, _| async move {
        *put.borrow_mut() = Some(socket);
    });
    let bytes = pattern(1000);
    for _ in 0..40 {
        pair.send(&[OutgoingDatagram::new(&bytes, pair.address); 10]);
    }
    pair.server.run_on();
    let socket = opened.borrow_mut().take().unwrap();
    let mut heard = Vec::new();
    hear_some(&socket, &mut heard);
    let counters = socket.counters();
    let received = heard.len() as u64;
    assert!((1..=110).contains(&received), "{received}");
    assert_eq!(counters.received, received);
    assert_eq!(counters.dropped, 400 - received);
}

pub fn a_sender_that_outruns_the_network_waits_for_room<T: Testbed>() {
    let story = Story::default();
    let teller = story.clone();
    let (bytes, count) = (pattern(1200), 3000);
    let server = Server::<T>::start(|_stream, _| async {});
    let (_, ip) = server.testbed.peers();
    let options = DatagramOptions::new(SocketAddr::new(server.address.ip(), 0));
    let target = SocketAddr::new(ip, DISCARD_PORT);
    let mut pair = Pair::<T>::start_on(server, options, move |socket, _| async move {
        let batch = vec![OutgoingDatagram::new(&bytes, target); count];
        send_all(&socket, &batch).await;
        teller.tell(socket.counters().sent);
    });
    let server = &mut pair.server;
    server.run_until("all to be sent", || story.count() == 1);
    assert_eq!(story.told(), [count as u64]);
}

pub fn a_socket_that_is_handed_over_wakes_the_new_task_and_no_longer_the_former_one<T: Testbed>() {
    let polls = Story::default();
    let noted = polls.clone();
    let mut pair = Pair::<T>::start(move |socket, around| async move {
        let place = Rc::new(RefCell::new(None));
        let taken_from = Rc::clone(&place);
        let new_task = spawn(&around.scheduler, async move {
            let handed_over = poll_fn(|_| match taken_from.borrow_mut().take() {
                Some(socket) => Poll::Ready(socket),
                None => Poll::Pending,
            });
            echo(handed_over.await).await;
        });
        // The report of the first datagram comes to this task, which does not look at it.
        assert!(socket.poll_receive(1, |_| {}).is_pending());
        for _ in 0..10 {
            around.scheduler.yield_now().await;
        }
        socket.set_task(new_task);
        *place.borrow_mut() = Some(socket);
        poll_fn(|_| {
            noted.tell(());
            Poll::<()>::Pending
        })
        .await;
    });
    for (count, byte) in (1..).zip(0..10_u8) {
        pair.send(&[OutgoingDatagram::new(&[byte], pair.address)]);
        pair.hear(count);
    }
    assert_eq!(polls.count(), 1, "the former task is polled no more");
}

pub fn an_address_in_use_is_an_error<T: Testbed>() {
    let pair = Pair::<T>::start(|socket, _| echo(socket));
    let options = DatagramOptions::new(pair.address);
    let again = pair
        .server
        .around
        .engine
        .open_datagrams(&options, TaskId::NONE);
    assert_eq!(again.err(), Some(DatagramError::Other(EADDRINUSE)));
}

/// A port that no test opens: discard (RFC 863).
const DISCARD_PORT: u16 = 9;

/// asm-generic/errno.h.
const EADDRINUSE: i32 = 98;

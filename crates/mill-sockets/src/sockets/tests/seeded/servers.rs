//! Servers with a thread for each connection or two: they wait in accept(2), read(2) and write(2).

use super::call::{Call, Given, Outcome};
use super::exchange::SERVER;
use super::thread::{Program, Scene, Wanted};
use crate::errno::Errno;
use crate::socket::SocketNumber;
use crate::sockets::closing::Half;

/// How an acceptor has a connection served.
#[derive(Clone, Copy, Debug)]
pub(super) enum Service {
    /// By itself, one after the other.
    Own,
    Thread,
    /// By a thread that reads and one that writes.
    Pair,
}

#[derive(Debug)]
pub(super) struct Acceptor {
    pub(super) listener: SocketNumber,
    pub(super) service: Service,
    pub(super) served: Option<Echo>,
}

impl Program for Acceptor {
    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted> {
        let mut last = last;
        if let Ok(Given::Socket(number)) = last {
            let descriptor = scene.adopt(number);
            last = Ok(Given::Nothing);
            let echo = Echo { number, descriptor };
            match self.service {
                Service::Own => self.served = Some(echo),
                Service::Thread => scene.started.push(Box::new(echo)),
                Service::Pair => {
                    let descriptor = scene.side.duplicate(number);
                    let reader = Reader { number, descriptor };
                    scene.started.push(Box::new(reader));
                    scene.started.push(Box::new(Writer(echo)));
                }
            }
        }
        if let Some(echo) = &mut self.served {
            let wanted = echo.next(scene, last);
            if wanted.is_some() {
                return wanted;
            }
            self.served = None;
        } else if last.is_err_and(|error| error == Errno::BAD_DESCRIPTOR) {
            return None;
        }
        if scene.is_over {
            return None;
        }
        scene.wait(Call::Accept(self.listener))
    }
}

/// Writes what it reads, until the end.
#[derive(Debug)]
pub(super) struct Echo {
    number: SocketNumber,
    descriptor: i32,
}

impl Program for Echo {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        let index = scene.side.exchange(self.number)?;
        let exchange = &scene.exchanges[index];
        let own = &exchange.ends[SERVER];
        let (left, is_finished) = (exchange.to_write(SERVER), own.saw_end);
        if scene.is_over || own.saw_error || (is_finished && left == 0) {
            if is_finished && !own.saw_error && scene.random.up_to(1) == 0 {
                let half = Half::Writing;
                scene.side.shutdown(scene.exchanges, self.number, half);
            }
            scene
                .side
                .close(scene.exchanges, self.number, self.descriptor);
            return None;
        }
        match left {
            0 => scene.wait_for_bytes(self.number),
            left => scene.wait(Call::Write(self.number, left)),
        }
    }
}

/// Reads what another thread writes.
#[derive(Debug)]
struct Reader {
    number: SocketNumber,
    descriptor: i32,
}

impl Program for Reader {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        let index = scene.side.exchange(self.number)?;
        if scene.is_over || scene.exchanges[index].ends[SERVER].is_over() {
            scene
                .side
                .close(scene.exchanges, self.number, self.descriptor);
            return None;
        }
        scene.wait_for_bytes(self.number)
    }
}

/// Writes what another thread has read.
#[derive(Debug)]
struct Writer(Echo);

impl Program for Writer {
    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted> {
        let index = scene.side.exchange(self.0.number)?;
        let exchange = &scene.exchanges[index];
        let is_idle = exchange.to_write(SERVER) == 0 && !exchange.ends[SERVER].is_over();
        if is_idle && !scene.is_over {
            return Wanted::waiting(Call::Answer(index));
        }
        self.0.next(scene, last)
    }
}

impl Scene<'_> {
    /// A connection was accepted; its first descriptor.
    pub(super) fn adopt(&mut self, number: SocketNumber) -> i32 {
        let peer = self.side.sockets.former_peer(number).unwrap();
        let mut found = self.exchanges.iter();
        let exchange = found.rposition(|exchange| exchange.port == peer.port());
        let exchange = exchange.expect("the client has opened it");
        let mut streams = self.side.streams.iter();
        assert!(streams.all(|stream| stream.exchange != exchange));
        self.side.open(number, exchange)
    }

    /// A call that waits, as long as the seed says.
    pub(super) fn wait(&mut self, call: Call) -> Option<Wanted> {
        match self.random.up_to(7) {
            0 => Wanted::for_us(call, self.random.up_to(50_000)),
            _ => Wanted::waiting(call),
        }
    }

    pub(super) fn wait_for_bytes(&mut self, number: SocketNumber) -> Option<Wanted> {
        let most = self.bytes_most();
        self.wait(Call::Read(number, most))
    }

    /// How many bytes a call takes at most.
    pub(super) fn bytes_most(&mut self) -> usize {
        self.random.one_of(&[1000, 100_000, 1, 1460, 5000])
    }
}

//! Clients: each connects, writes, reads what comes back, and ends, again and again and in all ways.

use super::call::{Call, Given, Outcome};
use super::exchange::{CLIENT, Exchange};
use super::thread::{Program, Scene, Wanted};
use super::workers::Mode;
use crate::epoll_set::{SetNumber, Target};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::{Options, SocketNumber};
use crate::sockets::closing::Half;
use core::net::SocketAddr;

#[derive(Debug)]
pub(super) struct Client {
    /// Connections that it has yet to open.
    pub(super) left: u32,
    pub(super) options: Options,
    pub(super) set: Option<SetNumber>,
    pub(super) talk: Option<Talk>,
}

/// How a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// In the calls, by one thread: little is said.
    Waiting,
    /// By two threads.
    Pair,
    Polling,
    Watching(SetNumber, Mode),
}

/// How it ends before all is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Reset,
    Close,
    ShutdownOfReading,
    ShutdownOfBoth,
    Dissolution,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Talk {
    number: SocketNumber,
    exchange: usize,
    descriptor: i32,
    style: Style,
    is_connected: bool,
    /// The end that comes after so many bytes.
    ending: Option<(Ending, usize)>,
    may_read: bool,
    may_write: bool,
}

impl Program for Client {
    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted> {
        let mut last = last;
        loop {
            if let Some(talk) = &mut self.talk {
                let wanted = talk.next(scene, last);
                if wanted.is_some() {
                    return wanted;
                }
                self.talk = None;
            }
            if scene.is_over || self.left == 0 {
                return None;
            }
            self.left -= 1;
            self.talk = Talk::open(scene, &self.options, self.set);
            last = Ok(Given::Nothing);
        }
    }
}

impl Talk {
    fn open(scene: &mut Scene<'_>, options: &Options, set: Option<SetNumber>) -> Option<Self> {
        let style = match (scene.random.up_to(3), set) {
            (0, _) => Style::Waiting,
            (1, _) => Style::Pair,
            (2, Some(set)) => {
                let modes = [Mode::Level, Mode::Edge, Mode::OneShot];
                Style::Watching(set, scene.random.one_of(&modes))
            }
            _ => Style::Polling,
        };
        let total = match style {
            Style::Waiting => scene.random.up_to(3_000),
            _ => {
                let most = scene.random.one_of(&[10, 3_000, 40_000]);
                scene.random.up_to(most)
            }
        };
        let total = usize::try_from(total).unwrap();
        let (number, exchange) = open_socket(scene, options, total)?;
        let descriptor = scene.side.open(number, exchange);
        if let Style::Watching(set, mode) = style {
            let events = scene.side.writing.0 | mode.flag();
            scene.side.watch(set, Target::Socket(number), events);
        }
        let endings = [
            Ending::Reset,
            Ending::Close,
            Ending::ShutdownOfReading,
            Ending::ShutdownOfBoth,
            Ending::Dissolution,
        ];
        let ends_early = scene.random.up_to(5) == 0;
        let ending = ends_early.then(|| {
            let after = scene.random.up_to(2 * total as u64);
            let ending = scene.random.one_of(&endings);
            (ending, usize::try_from(after).unwrap())
        });
        Some(Self {
            number,
            exchange,
            descriptor,
            style,
            is_connected: false,
            ending,
            may_read: true,
            may_write: true,
        })
    }

    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted> {
        if scene.is_over || scene.side.stream(self.number).is_none() {
            scene.side.close_all(scene.exchanges, self.number);
            return None;
        }
        if !self.is_connected {
            return match self.connect(scene, last) {
                Ok(Some(wanted)) => Some(wanted),
                Ok(None) => self.talk(scene),
                Err(()) => {
                    scene.side.close_all(scene.exchanges, self.number);
                    None
                }
            };
        }
        match last {
            Err(Errno::AGAIN) if self.may_write && self.has_more(scene) => self.may_write = false,
            Err(Errno::AGAIN) => self.may_read = false,
            Ok(Given::Ready(list)) if !list.is_empty() => self.look_again(),
            Ok(Given::Events(events)) if !events.is_empty() => self.look_again(),
            _ => {}
        }
        self.talk(scene)
    }

    const fn look_again(&mut self) {
        (self.may_read, self.may_write) = (true, true);
    }

    fn has_more(&self, scene: &Scene<'_>) -> bool {
        scene.exchanges[self.exchange].to_write(CLIENT) > 0
    }

    /// What to call until the handshake is over; `Err` if it has failed.
    fn connect(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Result<Option<Wanted>, ()> {
        let handshake = Call::Handshake(self.number);
        let waits = matches!(self.style, Style::Waiting | Style::Pair);
        match last {
            // What [`Self::open`] has begun; or readiness.
            Ok(Given::Nothing) if scene.exchanges[self.exchange].ends[CLIENT].is_connected => {}
            Ok(Given::Nothing) if waits => return Ok(scene.wait(handshake)),
            Err(Errno::INTERRUPTED | Errno::AGAIN) if waits => return Ok(scene.wait(handshake)),
            Ok(Given::Ready(list)) if !list.is_empty() => return Ok(Wanted::at_once(handshake)),
            Ok(Given::Events(list)) if !list.is_empty() => return Ok(Wanted::at_once(handshake)),
            Ok(_) | Err(Errno::INTERRUPTED | Errno::AGAIN) => {
                let writing = scene.side.writing;
                return Ok(self.wait_until_ready(scene, writing));
            }
            Err(_) if scene.side.sockets.is_idle(self.number) && scene.random.up_to(3) > 0 => {
                self.connect_anew(scene);
                return Ok(Wanted::for_us(Call::Sleep, 20_000));
            }
            Err(_) => return Err(()),
        }
        self.is_connected = true;
        if self.style == Style::Pair {
            let descriptor = scene.side.duplicate(self.number);
            scene.started.push(Box::new(Reader {
                number: self.number,
                exchange: self.exchange,
                descriptor,
            }));
        }
        Ok(None)
    }

    /// connect(2) once more, of the same socket.
    fn connect_anew(&mut self, scene: &mut Scene<'_>) {
        let former = &scene.exchanges[self.exchange];
        let total = former.total;
        let own = &former.ends[CLIENT];
        // What was shut down while it was not connected stays so, without FIN.
        let reads_no_more = own.reads_no_more;
        let is_shut = own.has_finished || reads_no_more;
        let source = chosen_source(scene);
        let target = super::super::SERVER.parse().unwrap();
        let sockets = &mut scene.side.sockets;
        let result = sockets.connect_anew(self.number, target, Some(source));
        assert_eq!(result, Ok(()));
        self.exchange = scene.open_exchange(source.port(), total);
        let exchange = &mut scene.exchanges[self.exchange];
        exchange.may_reset |= is_shut;
        exchange.ends[CLIENT].reads_no_more = reads_no_more;
        let mut streams = scene.side.streams.iter_mut();
        let stream = streams.find(|stream| stream.number == self.number);
        stream.unwrap().exchange = self.exchange;
    }

    fn wait_until_ready(&self, scene: &mut Scene<'_>, wanted: Readiness) -> Option<Wanted> {
        match self.style {
            Style::Watching(set, mode) => {
                // An edge is waited for with all that it may be, as long as it was not there.
                let wanted = match mode {
                    Mode::Edge => scene.side.reading | scene.side.writing | Readiness::RDHUP,
                    _ => wanted,
                };
                if scene.side.events(set, self.number) != Some(wanted.0 | mode.flag())
                    || mode == Mode::OneShot
                {
                    let events = wanted.0 | mode.flag();
                    scene.side.change_watch(set, self.number, events);
                }
                scene.wait(Call::Wait(set, 3))
            }
            _ => scene.wait(Call::Poll(vec![(self.number, wanted)])),
        }
    }

    fn talk(&mut self, scene: &mut Scene<'_>) -> Option<Wanted> {
        let exchange = &scene.exchanges[self.exchange];
        let own = &exchange.ends[CLIENT];
        let left = exchange.to_write(CLIENT);
        let (has_finished, is_over) = (own.has_finished, own.is_over());
        let said = own.written + own.read;
        if let Some((ending, after)) = self.ending
            && !is_over
            && said >= after
        {
            self.ending = None;
            return self.end(scene, ending);
        }
        if is_over {
            scene
                .side
                .close(scene.exchanges, self.number, self.descriptor);
            return None;
        }
        if left == 0 && !has_finished {
            let half = Half::Writing;
            scene.side.shutdown(scene.exchanges, self.number, half);
        }
        let writes = left > 0 && !has_finished;
        let most = scene.bytes_most();
        match self.style {
            Style::Waiting | Style::Pair if writes => scene.wait(Call::Write(self.number, most)),
            Style::Waiting => scene.wait_for_bytes(self.number),
            Style::Pair => Wanted::waiting(Call::End(self.exchange)),
            _ if writes && self.may_write => Wanted::at_once(Call::Write(self.number, most)),
            _ if self.may_read => Wanted::at_once(Call::Read(self.number, most)),
            _ => {
                let wanted = scene.side.reading | scene.side.writing.when(writes);
                self.wait_until_ready(scene, wanted)
            }
        }
    }

    /// Ends before all was said.
    fn end(&mut self, scene: &mut Scene<'_>, ending: Ending) -> Option<Wanted> {
        scene.exchanges[self.exchange].may_reset = true;
        match ending {
            Ending::Reset => {
                let linger = [1_i32, 0].map(i32::to_ne_bytes).concat();
                let sockets = &mut scene.side.sockets;
                sockets.set_option(self.number, 1, 13, &linger).unwrap();
            }
            Ending::Close => {}
            Ending::ShutdownOfReading | Ending::ShutdownOfBoth => {
                let half = match ending {
                    Ending::ShutdownOfReading => Half::Reading,
                    _ => Half::Both,
                };
                scene.side.shutdown(scene.exchanges, self.number, half);
                return self.talk(scene);
            }
            Ending::Dissolution => {
                scene.side.sockets.dissolve(self.number).unwrap();
                scene.side.touched.push(self.number);
            }
        }
        scene.side.close_all(scene.exchanges, self.number);
        None
    }
}

/// Begins to open a connection.
fn open_socket(
    scene: &mut Scene<'_>,
    options: &Options,
    total: usize,
) -> Option<(SocketNumber, usize)> {
    let chosen = chosen_source(scene);
    let source = Some(chosen).filter(|_| scene.random.up_to(1) == 0);
    let target = super::super::SERVER.parse().unwrap();
    let sockets = &mut scene.side.sockets;
    let mut number = sockets.connect(target, source, options.clone()).unwrap();
    let mut port = sockets.local(number).unwrap().port();
    if scene.exchanges.iter().any(|other| other.port == port) {
        sockets.close(number);
        let opened = sockets.connect(target, Some(chosen), options.clone());
        number = opened.unwrap();
        port = chosen.port();
    }
    Some((number, scene.open_exchange(port, total)))
}

/// An address that no other connection has had.
fn chosen_source(scene: &Scene<'_>) -> SocketAddr {
    let count = u16::try_from(scene.exchanges.len()).unwrap();
    SocketAddr::from(([10, 0, 0, 1], 10_000 + count))
}

impl Scene<'_> {
    fn open_exchange(&mut self, port: u16, total: usize) -> usize {
        let mut exchange = Exchange::new(port, total);
        exchange.may_reset = *self.has_left;
        self.exchanges.push(exchange);
        self.exchanges.len() - 1
    }
}

/// Reads for a client that writes.
#[derive(Debug)]
struct Reader {
    number: SocketNumber,
    exchange: usize,
    descriptor: i32,
}

impl Program for Reader {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        let is_over = scene.exchanges[self.exchange].ends[CLIENT].is_over();
        if scene.is_over || is_over {
            scene
                .side
                .close(scene.exchanges, self.number, self.descriptor);
            return None;
        }
        scene.wait_for_bytes(self.number)
    }
}

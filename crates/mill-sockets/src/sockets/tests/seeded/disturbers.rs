//! Threads that change what others work with: options, listeners, sets.

use super::call::{Call, Outcome};
use super::servers::{Acceptor, Service};
use super::thread::{Program, Scene, Wanted};
use crate::epoll_set::{SetNumber, Target};
use crate::socket::{Options, SocketNumber};
use crate::sockets::closing::Half;

const SOL_SOCKET: i32 = 1;
const SOL_TCP: i32 = 6;
const SO_SNDBUF: i32 = 7;
const SO_RCVLOWAT: i32 = 18;
const TCP_NODELAY: i32 = 1;
const TCP_CORK: i32 = 3;
const TCP_NOTSENT_LOWAT: i32 = 25;

/// Sets options of streams, and takes back what keeps them from going on.
#[derive(Debug)]
pub(super) struct Tuner {
    pub(super) left: u32,
    pub(super) undone: Option<(SocketNumber, i32, i32, i32)>,
}

impl Program for Tuner {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        if let Some((number, level, name, value)) = self.undone.take() {
            scene.set(number, level, name, value);
        }
        let numbers = scene.side.streams.iter().map(|stream| stream.number);
        let numbers: Vec<SocketNumber> = numbers.collect();
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if !numbers.is_empty() {
            let number = scene.random.one_of(&numbers);
            let (level, name, value, after) = scene.random.one_of(&[
                (SOL_SOCKET, SO_RCVLOWAT, 5_000, 1),
                (SOL_SOCKET, SO_RCVLOWAT, 10, 1),
                (SOL_SOCKET, SO_SNDBUF, 0, 20_000),
                (SOL_SOCKET, SO_SNDBUF, 100_000, 3_000),
                (SOL_TCP, TCP_NOTSENT_LOWAT, 1, 0),
                (SOL_TCP, TCP_NOTSENT_LOWAT, 2_000, 0),
                (SOL_TCP, TCP_CORK, 1, 0),
                (SOL_TCP, TCP_NODELAY, 1, 0),
            ]);
            scene.set(number, level, name, value);
            self.undone = Some((number, level, name, after));
        }
        Wanted::for_us(Call::Sleep, scene.random.up_to(20_000))
    }
}

/// Ends connections of other threads, which may wait for them.
#[derive(Debug)]
pub(super) struct Ender {
    pub(super) left: u32,
}

impl Program for Ender {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let streams = scene.side.streams.iter();
        let streams: Vec<_> = streams.map(|it| (it.number, it.exchange)).collect();
        if scene.random.up_to(1) == 0 && !streams.is_empty() {
            let (number, exchange) = scene.random.one_of(&streams);
            scene.exchanges[exchange].may_reset = true;
            let halves = [Half::Reading, Half::Writing, Half::Both];
            match scene.random.up_to(4) {
                0 => {
                    scene.side.sockets.dissolve(number).unwrap();
                    scene.side.touched.push(number);
                }
                1 => scene.side.close_all(scene.exchanges, number),
                _ => {
                    let half = scene.random.one_of(&halves);
                    scene.side.shutdown(scene.exchanges, number, half);
                }
            }
        }
        Wanted::for_us(Call::Sleep, scene.random.up_to(40_000))
    }
}

/// Closes the listener after a while, and after another one listens again.
#[derive(Debug)]
pub(super) struct Closer {
    pub(super) listener: SocketNumber,
    /// Of the next listener; `None` once it listens.
    pub(super) options: Option<Options>,
    pub(super) has_waited: bool,
}

impl Program for Closer {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        if core::mem::replace(&mut self.has_waited, true) {
            if scene.side.is_listener(self.listener) {
                *scene.has_left = true;
                for exchange in scene.exchanges.iter_mut() {
                    exchange.may_reset = true;
                }
                scene.side.close_listener(self.listener);
            } else {
                *scene.has_left = false;
                let acceptor = Acceptor {
                    listener: scene.side.listen(self.options.take()?),
                    service: Service::Thread,
                    served: None,
                };
                scene.started.push(Box::new(acceptor));
                return None;
            }
        }
        Wanted::for_us(Call::Sleep, scene.random.up_to(100_000))
    }
}

/// Has a set watch another one after a while.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) outer: SetNumber,
    pub(super) inner: SetNumber,
    pub(super) has_waited: bool,
}

impl Program for Builder {
    fn next(&mut self, scene: &mut Scene<'_>, _: Outcome) -> Option<Wanted> {
        if !core::mem::replace(&mut self.has_waited, true) {
            return Wanted::for_us(Call::Sleep, scene.random.up_to(100_000));
        }
        let target = Target::Set(self.inner);
        let events = scene.side.reading.0;
        scene.side.watch(self.outer, target, events);
        None
    }
}

impl Scene<'_> {
    fn set(&mut self, number: SocketNumber, level: i32, name: i32, value: i32) {
        if self.side.stream(number).is_some() {
            let value = value.to_ne_bytes();
            let result = self.side.sockets.set_option(number, level, name, &value);
            assert_eq!(result, Ok(()));
            self.side.touched.push(number);
        }
    }
}

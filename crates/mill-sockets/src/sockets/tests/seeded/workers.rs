//! Servers that wait in epoll_wait(2) or poll(2), alone or several at one set, and never in another call.

use super::call::{Call, Given, Outcome};
use super::exchange::SERVER;
use super::thread::{Program, Scene, Wanted};
use crate::epoll_set::{Interest, SetNumber, Target};
use crate::errno::Errno;
use crate::readiness::Readiness;
use crate::socket::SocketNumber;
use crate::sockets::closing::Half;
use std::collections::VecDeque;

/// How connections are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Level,
    Edge,
    OneShot,
}

impl Mode {
    pub(super) const fn flag(self) -> u32 {
        match self {
            Self::Level => 0,
            Self::Edge => Interest::EDGE,
            Self::OneShot => Interest::ONESHOT,
        }
    }
}

#[derive(Debug)]
pub(super) struct Worker {
    listener: SocketNumber,
    mode: Mode,
    /// What it waits for; without one it polls all sockets.
    waits_at: Option<SetNumber>,
    /// Where it watches connections.
    watches_at: Option<SetNumber>,
    tasks: VecDeque<Task>,
    doing: Option<Task>,
}

#[derive(Clone, Copy, Debug)]
enum Task {
    /// A set that another one has told of.
    Look(SetNumber),
    Accept(SocketNumber),
    Read(SocketNumber),
    Write(SocketNumber),
}

impl Worker {
    pub(super) const fn new(
        listener: SocketNumber,
        mode: Mode,
        waits_at: Option<SetNumber>,
        watches_at: Option<SetNumber>,
    ) -> Self {
        Self {
            listener,
            mode,
            waits_at,
            watches_at,
            tasks: VecDeque::new(),
            doing: None,
        }
    }

    fn add_ready(&mut self, scene: &Scene<'_>, last: Outcome) {
        match last {
            Ok(Given::Ready(ready)) => ready.iter().for_each(|number| self.add(*number)),
            Ok(Given::Events(events)) => {
                for event in events {
                    let mut entries = scene.side.entries.iter();
                    let entry = entries
                        .find(|entry| u64::from(entry.descriptor.cast_unsigned()) == event.data);
                    match entry.map(|entry| entry.target) {
                        Some(Target::Socket(number)) => self.add(number),
                        Some(Target::Set(inner)) => self.tasks.push_back(Task::Look(inner)),
                        // Another thread has closed it since.
                        None => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, number: SocketNumber) {
        let is_listener = number == self.listener;
        self.tasks.push_back(match is_listener {
            true => Task::Accept(number),
            false => Task::Read(number),
        });
    }

    /// What comes after a task, if not the next one.
    fn go_on(&mut self, scene: &mut Scene<'_>, task: Task, last: &Outcome) -> Option<Task> {
        let is_edge = self.mode == Mode::Edge;
        match (task, last) {
            (Task::Look(_), _) => None,
            (Task::Accept(listener), Ok(Given::Socket(number))) => {
                scene.adopt(*number);
                let events = self.events(scene, *number);
                if let Some(set) = self.watches_at {
                    scene.side.watch(set, Target::Socket(*number), events);
                }
                Some(Task::Accept(listener))
            }
            (Task::Accept(listener), _) => {
                if self.mode == Mode::OneShot
                    && let Some(set) = self.watches_at
                {
                    let events = scene.side.reading.0 | Interest::ONESHOT;
                    scene.side.change_watch(set, listener, events);
                }
                None
            }
            (Task::Read(number) | Task::Write(number), Err(error)) if *error != Errno::AGAIN => {
                scene.side.close_all(scene.exchanges, number);
                None
            }
            (Task::Read(number), Ok(Given::Count(1..))) if is_edge => Some(Task::Read(number)),
            (Task::Read(number), _) => {
                let index = scene.side.exchange(number)?;
                if scene.exchanges[index].to_write(SERVER) > 0 {
                    return Some(Task::Write(number));
                }
                self.leave(scene, number)
            }
            (Task::Write(number), Ok(_)) if is_edge => {
                let index = scene.side.exchange(number)?;
                if scene.exchanges[index].to_write(SERVER) > 0 {
                    return Some(Task::Write(number));
                }
                self.leave(scene, number)
            }
            (Task::Write(number), _) => self.leave(scene, number),
        }
    }

    /// All that can be done of a connection now is done.
    fn leave(&self, scene: &mut Scene<'_>, number: SocketNumber) -> Option<Task> {
        let index = scene.side.exchange(number)?;
        let exchange = &scene.exchanges[index];
        if exchange.ends[SERVER].saw_end && exchange.to_write(SERVER) == 0 {
            if scene.random.up_to(1) == 0 && !exchange.ends[SERVER].saw_error {
                let half = Half::Writing;
                scene.side.shutdown(scene.exchanges, number, half);
            }
            scene.side.close_all(scene.exchanges, number);
            return None;
        }
        if let Some(set) = self.watches_at.filter(|_| self.mode != Mode::Edge) {
            let events = self.events(scene, number);
            if scene.random.up_to(9) == 0 {
                scene.side.unwatch(set, number);
                scene.side.watch(set, Target::Socket(number), events);
            } else {
                scene.side.change_watch(set, number, events);
            }
        }
        None
    }

    /// What a connection is watched for.
    fn events(&self, scene: &Scene<'_>, number: SocketNumber) -> u32 {
        self.wanted(scene, number).0 | self.mode.flag()
    }

    fn wanted(&self, scene: &Scene<'_>, number: SocketNumber) -> Readiness {
        let is_edge = self.mode == Mode::Edge;
        let Some(index) = scene.side.exchange(number) else {
            return scene.side.reading;
        };
        let exchange = &scene.exchanges[index];
        let reads = is_edge || !exchange.ends[SERVER].saw_end;
        let writes = is_edge || exchange.to_write(SERVER) > 0;
        let side = &scene.side;
        (side.reading | Readiness::RDHUP).when(reads) | side.writing.when(writes)
    }

    /// Waits until something is ready.
    fn wait(&self, scene: &mut Scene<'_>) -> Option<Wanted> {
        if let Some(set) = self.waits_at {
            let most = scene.random.one_of(&[1, 2, 16]);
            return scene.wait(Call::Wait(set, most));
        }
        let streams = scene.side.streams.iter().map(|stream| stream.number);
        let listener = Some(self.listener).filter(|number| scene.side.is_listener(*number));
        let all = streams.chain(listener);
        let list = all.map(|number| (number, self.wanted(scene, number)));
        let list = list.collect();
        scene.wait(Call::Poll(list))
    }
}

impl Program for Worker {
    fn next(&mut self, scene: &mut Scene<'_>, last: Outcome) -> Option<Wanted> {
        let next = match self.doing.take() {
            Some(Task::Look(_)) | None => {
                self.add_ready(scene, last);
                None
            }
            Some(task) => self.go_on(scene, task, &last),
        };
        let next = next.or_else(|| self.tasks.pop_front());
        self.doing = next;
        match next {
            Some(Task::Look(set)) => Wanted::at_once(Call::Wait(set, 4)),
            Some(Task::Accept(number)) => Wanted::at_once(Call::Accept(number)),
            Some(Task::Read(number)) => {
                let most = scene.bytes_most();
                Wanted::at_once(Call::Read(number, most))
            }
            Some(Task::Write(number)) => {
                let most = scene.bytes_most();
                Wanted::at_once(Call::Write(number, most))
            }
            None if scene.is_over => None,
            None => self.wait(scene),
        }
    }
}

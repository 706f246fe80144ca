//! Maps UDP sockets of the stack to their tasks, and collects which tasks to poll.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::SocketAddr;
use mill_runtime::tasks::TaskId;

#[derive(Debug, Default)]
pub(crate) struct DatagramTasks {
    sockets: BTreeMap<SocketAddr, User>,
    /// How many sockets wait for room in the transmit queue.
    waiting: usize,
    ready: Vec<TaskId>,
}

#[derive(Debug)]
struct User {
    task: TaskId,
    waits_for_room: bool,
}

impl DatagramTasks {
    pub(crate) fn open(&mut self, socket: SocketAddr, task: TaskId) {
        let user = User {
            task,
            waits_for_room: false,
        };
        self.sockets.insert(socket, user);
    }

    pub(crate) fn close(&mut self, socket: SocketAddr) {
        if let Some(user) = self.sockets.remove(&socket) {
            self.waiting -= usize::from(user.waits_for_room);
        }
    }

    /// The new task is reported in any case, so that it handles what arrived before.
    pub(crate) fn set_task(&mut self, socket: SocketAddr, task: TaskId) {
        if let Some(user) = self.sockets.get_mut(&socket) {
            user.task = task;
            self.ready.push(task);
        }
    }

    /// A socket's transmit queue was full.
    pub(crate) fn wait_for_room(&mut self, socket: SocketAddr) {
        if let Some(user) = self.sockets.get_mut(&socket)
            && !core::mem::replace(&mut user.waits_for_room, true)
        {
            self.waiting += 1;
        }
    }

    /// Whether sockets wait for room.
    pub(crate) const fn wants_room(&self) -> bool {
        self.waiting > 0
    }

    /// There is room again.
    pub(crate) fn on_room(&mut self) {
        for user in self.sockets.values_mut() {
            if core::mem::take(&mut user.waits_for_room) {
                self.ready.push(user.task);
            }
        }
        self.waiting = 0;
    }

    /// A socket has something to read.
    pub(crate) fn on_readable(&mut self, socket: SocketAddr) {
        let user = self.sockets.get(&socket);
        self.ready.extend(user.map(|user| user.task));
    }

    pub(crate) const fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Appends the tasks that are to be polled.
    pub(crate) fn take_ready(&mut self, into: &mut Vec<TaskId>) {
        into.append(&mut self.ready);
    }
}

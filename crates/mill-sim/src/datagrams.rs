//! A socket of datagrams, as a task holds it.

use crate::engine::SimEngine;
use crate::network::Net;
use mill_runtime::datagrams::{
    DatagramCounters, DatagramEngine, DatagramError, DatagramOptions, DatagramSocket,
    OutgoingDatagram, ReceivedDatagram,
};
use mill_runtime::tasks::TaskId;
use std::net::SocketAddr;
use std::task::Poll;

/// A socket of the simulated world.
#[derive(Debug)]
pub struct SimDatagrams {
    net: Net,
    socket: usize,
}

impl DatagramEngine for SimEngine {
    type Datagrams = SimDatagrams;

    fn open_datagrams(
        &self,
        options: &DatagramOptions,
        task: TaskId,
    ) -> Result<SimDatagrams, DatagramError> {
        let net = self.net();
        let socket = net
            .borrow_mut()
            .open_datagrams(self.index(), options, task)?;
        Ok(SimDatagrams { net, socket })
    }
}

impl DatagramSocket for SimDatagrams {
    fn poll_receive(
        &self,
        count_max: usize,
        mut take: impl FnMut(ReceivedDatagram<'_>),
    ) -> Poll<Result<usize, DatagramError>> {
        let mut count = 0;
        while count < count_max {
            if count > 0 && !self.net.borrow().has_datagram(self.socket) {
                break;
            }
            let received = self.net.borrow_mut().receive_datagram(self.socket);
            let datagram = match received {
                Poll::Ready(Ok(datagram)) => datagram,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            };
            take(ReceivedDatagram {
                bytes: &datagram.bytes,
                remote: datagram.source,
                local: datagram.target,
                ecn: datagram.ecn,
                segment_bytes: None,
            });
            count += 1;
        }
        Poll::Ready(Ok(count))
    }

    fn poll_send(&self, batch: &[OutgoingDatagram<'_>]) -> Poll<Result<usize, DatagramError>> {
        Poll::Ready(self.net.borrow_mut().send_datagrams(self.socket, batch))
    }

    fn local(&self) -> SocketAddr {
        self.net.borrow().datagram_sockets[self.socket].local
    }

    fn set_task(&self, task: TaskId) {
        let mut net = self.net.borrow_mut();
        net.hand_over_datagrams(self.socket, task);
    }

    fn counters(&self) -> DatagramCounters {
        self.net.borrow().datagram_sockets[self.socket].counters
    }
}

impl Drop for SimDatagrams {
    fn drop(&mut self) {
        // While a test fails the network may be borrowed further up; then nothing looks at it any more.
        if let Ok(mut net) = self.net.try_borrow_mut() {
            net.close_datagrams(self.socket);
        }
    }
}

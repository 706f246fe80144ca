//! Options of connections that are open already.

use crate::host::Host;
use crate::queue::SendQueue;
use crate::socket::{SocketId, SocketOptions};

impl<Q: SendQueue> Host<Q> {
    /// What the connection has of its own from now on, `None` being as the host's configuration says (setsockopt(2)): when it is
    /// given up, keep-alive, the receive buffer, congestion control. What is said in the SYN has no effect after it.
    pub fn set_socket_options(&mut self, socket: SocketId, options: SocketOptions) {
        let number = self.config_for(options);
        let Some(slot) = self.slots.of_mut(socket) else {
            return;
        };
        let former = core::mem::replace(&mut slot.config, number);
        let (former, config) = (
            self.tcp_context.config(former),
            self.tcp_context.config(number),
        );
        let has_other_keepalive = former.keepalive != config.keepalive;
        let has_other_buffer = former.receive_buffer_bytes_max != config.receive_buffer_bytes_max;
        let buffer_bytes = config.receive_buffer_bytes;
        if has_other_keepalive {
            let env = self.tcp_context.env(number, self.now);
            slot.connection.set_keepalive(&env);
        }
        if has_other_buffer {
            slot.connection.set_receive_buffer(buffer_bytes);
        }
        // What is left of a timer is counted anew when it is looked whether there is something to send.
        self.slots.want_transmit(socket.index);
    }
}

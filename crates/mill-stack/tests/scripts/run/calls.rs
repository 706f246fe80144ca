//! The socket calls of scripts, over the host.

mod facts;

use super::{PEER_PORT, Run};
use crate::flow::{peer_byte, stack_byte};
use crate::script::Call;
use mill_stack::socket::{
    ConnectError, ListenError, ListenOptions, ListenerId, SocketError, SocketId,
};
use mill_tcp::time::Duration;
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// The descriptors of the script's program.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    open: BTreeMap<u32, Socket>,
    /// How many were made; the first is number 3, as in a program with its standard streams open.
    made: u32,
    /// Where the program listens, last.
    port: Option<u16>,
}

impl Sockets {
    pub(super) const fn port(&self) -> Option<u16> {
        self.port
    }

    fn add(&mut self, socket: Socket) -> u32 {
        let number = FIRST + self.made;
        self.made += 1;
        self.open.insert(number, socket);
        number
    }
}

const FIRST: u32 = 3;

#[derive(Debug)]
struct Socket {
    kind: Kind,
    options: ListenOptions,
    cork: bool,
    /// `SO_LINGER` with no time: to close is to abort.
    aborts: bool,
    bound: Option<u16>,
    /// Bytes so far, which say what the next ones are.
    was_read: u32,
    was_written: u32,
    shut: bool,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Fresh,
    Listener(ListenerId),
    Stream(SocketId),
}

impl Socket {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            options: ListenOptions {
                nodelay: false,
                ..ListenOptions::default()
            },
            cork: false,
            aborts: false,
            bound: None,
            was_read: 0,
            was_written: 0,
            shut: false,
        }
    }
}

/// Whether a call that gave this would have blocked in a program that waits.
pub(super) fn would_block(result: &str) -> bool {
    matches!(result, "-EAGAIN" | "-EINPROGRESS" | "-EALREADY")
}

impl Run {
    /// Makes the call; an error is one of the script itself.
    pub(super) fn call(&mut self, call: &Call) -> Result<String, String> {
        let result = self.dispatch(call)?;
        if self.blocked.is_none() && !would_block(&result) {
            let Call {
                name, arguments, ..
            } = call;
            let arguments = arguments.join(", ");
            self.ladder
                .call(self.now, &format!("{name}({arguments}) = {result}"));
        }
        Ok(result)
    }

    fn dispatch(&mut self, call: &Call) -> Result<String, String> {
        let arguments: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
        if call.name == "socket" {
            return Ok(self.sockets.add(Socket::new(Kind::Fresh)).to_string());
        }
        let (fd, rest) = arguments.split_first().ok_or("of which descriptor?")?;
        let fd = integer(fd)?;
        if !self.sockets.open.contains_key(&fd) {
            return Ok("-EBADF".into());
        }
        match (call.name.as_str(), rest) {
            ("bind", [port]) => self.bind(fd, port),
            ("listen", [backlog]) => self.listen(fd, backlog),
            ("accept", []) => self.accept(fd),
            ("connect", []) => self.connect(fd, "@1"),
            ("connect", [flow]) => self.connect(fd, flow),
            ("setsockopt", [option, values @ ..]) => self.set_option(fd, option, &values.join(",")),
            ("read", [count]) => self.read(fd, count),
            ("write", [count]) => self.write(fd, count),
            ("shutdown", []) => self.shutdown(fd),
            ("close", []) => self.close(fd),
            ("abort", []) => self.abort(fd),
            ("info", [field]) => self.fact(fd, field),
            ("is_ready", []) => self.is_ready(fd),
            (name, _) => Err(format!("no call {name} with so many arguments")),
        }
    }

    fn socket(&mut self, fd: u32) -> &mut Socket {
        self.sockets
            .open
            .get_mut(&fd)
            .expect("dispatch looked for it")
    }

    fn stream(&mut self, fd: u32) -> Result<SocketId, String> {
        match self.socket(fd).kind {
            Kind::Stream(id) => Ok(id),
            _ => Err(format!("{fd} is no connection")),
        }
    }

    fn bind(&mut self, fd: u32, port: &str) -> Result<String, String> {
        let port = integer(port)?;
        let port = u16::try_from(port).map_err(|_| "no such port")?;
        self.socket(fd).bound = Some(port);
        Ok("0".into())
    }

    fn listen(&mut self, fd: u32, backlog: &str) -> Result<String, String> {
        let backlog = integer(backlog)?;
        let local = self.ends.local;
        let socket = self.socket(fd);
        let port = socket.bound.unwrap_or(super::LOCAL_PORT);
        let options = ListenOptions {
            backlog,
            ..socket.options.clone()
        };
        let made = self.host.listen(SocketAddr::new(local, port), &options);
        Ok(match made {
            Ok(id) => {
                self.socket(fd).kind = Kind::Listener(id);
                self.sockets.port = Some(port);
                "0"
            }
            Err(ListenError::InUse) => "-EADDRINUSE",
            Err(ListenError::NotOurs) => "-EADDRNOTAVAIL",
            Err(ListenError::TooMany) => "-ENFILE",
        }
        .into())
    }

    fn accept(&mut self, fd: u32) -> Result<String, String> {
        let Kind::Listener(listener) = self.socket(fd).kind else {
            return Err(format!("{fd} does not listen"));
        };
        let token = u64::from(FIRST + self.sockets.made);
        let Some(id) = self.host.accept(listener, token) else {
            return Ok("-EAGAIN".into());
        };
        let number = self.sockets.add(Socket::new(Kind::Stream(id)));
        Ok(number.to_string())
    }

    fn connect(&mut self, fd: u32, flow: &str) -> Result<String, String> {
        if let Kind::Stream(id) = self.socket(fd).kind {
            if self.host.is_established(id) {
                return Ok("0".into());
            }
            let error = self.host.readable(id).error;
            return Ok(error.map_or("-EALREADY", errno).into());
        }
        let number = flow.strip_prefix('@').ok_or("a flow is @1")?;
        let flow = u16::try_from(integer(number)?).map_err(|_| "no such flow")?;
        let target = SocketAddr::new(self.ends.peer, PEER_PORT + flow);
        let local = self.ends.local;
        let socket = self.socket(fd);
        let source = socket.bound.map(|port| SocketAddr::new(local, port));
        let (nodelay, cork, each) = (socket.options.nodelay, socket.cork, socket.options.each);
        let token = u64::from(fd);
        let made = self
            .host
            .connect_with(target, source, nodelay, each, token, |_| true);
        match made {
            Ok(id) => {
                self.socket(fd).kind = Kind::Stream(id);
                self.host.set_cork(id, cork);
                Ok("-EINPROGRESS".into())
            }
            Err(ConnectError::NoRoute) => Ok("-ENETUNREACH".into()),
            Err(ConnectError::NoPort) => Ok("-EADDRNOTAVAIL".into()),
            Err(ConnectError::InUse) => Ok("-EADDRINUSE".into()),
            Err(ConnectError::TooMany) => Ok("-ENOBUFS".into()),
        }
    }

    fn set_option(&mut self, fd: u32, option: &str, value: &str) -> Result<String, String> {
        let socket = self.socket(fd);
        match option {
            "nodelay" => socket.options.nodelay = integer(value)? != 0,
            "cork" => socket.cork = integer(value)? != 0,
            "abort_on_close" => socket.aborts = integer(value)? != 0,
            "defer_accept" => socket.options.deferred = integer(value)? != 0,
            "share" => socket.options.share = integer(value)? != 0,
            "fast_open" => socket.options.fast_open = Some(integer(value)?),
            "receive_buffer" => {
                socket.options.each.receive_buffer_bytes = Some(integer(value)?);
            }
            "mss" => {
                let mss = u16::try_from(integer(value)?).map_err(|_| "no such MSS")?;
                socket.options.each.mss_max = Some(mss);
            }
            "user_timeout_ms" => {
                let timeout = Duration::from_millis(integer(value)?.into());
                socket.options.each.user_timeout = Some(timeout);
            }
            "congestion" => {
                socket.options.each.congestion = Some(crate::settings::congestion(value)?);
            }
            "keepalive" => {
                socket.options.each.keepalive = Some(crate::settings::keepalive(value)?);
            }
            other => return Err(format!("no option {other}")),
        }
        let (kind, nodelay, cork) = (socket.kind, socket.options.nodelay, socket.cork);
        let each = socket.options.each;
        if let Kind::Listener(id) = kind {
            match option {
                "mss" | "user_timeout_ms" => self.host.set_listener_options(id, each),
                other => return Err(format!("{other} is said before listening")),
            }
        }
        if let Kind::Stream(id) = kind {
            match option {
                "user_timeout_ms" | "keepalive" | "receive_buffer" | "congestion" => {
                    self.host.set_socket_options(id, each);
                }
                "nodelay" => self.host.set_nodelay(id, nodelay),
                "cork" => self.host.set_cork(id, cork),
                "abort_on_close" => {}
                other => return Err(format!("{other} is said before listening")),
            }
        }
        Ok("0".into())
    }

    /// As read(2) that does not wait; looks whether the bytes are those that the peer sent.
    fn read(&mut self, fd: u32, count: &str) -> Result<String, String> {
        let count = integer(count)? as usize;
        let id = self.stream(fd)?;
        let state = self.host.readable(id);
        if state.unread == 0 {
            return Ok(match (state.error, state.finished) {
                (Some(error), _) => errno(error),
                (None, true) => "0",
                (None, false) => "-EAGAIN",
            }
            .into());
        }
        let from = self.socket(fd).was_read;
        let (read, is_right) = self.host.read(id, &mut self.wire, |bytes| {
            let read = bytes.len().min(count);
            let mut expected = (from.wrapping_add(1)..).map(peer_byte);
            let is_right = bytes[..read]
                .iter()
                .all(|byte| Some(*byte) == expected.next());
            (read, (read, is_right))
        });
        if !is_right {
            return Err("these are not the bytes that the peer sent".into());
        }
        let read_bytes = u32::try_from(read).map_err(|_| "more than a script sends")?;
        self.socket(fd).was_read += read_bytes;
        Ok(read.to_string())
    }

    fn write(&mut self, fd: u32, count: &str) -> Result<String, String> {
        let count = integer(count)?;
        let id = self.stream(fd)?;
        let socket = self.socket(fd);
        if socket.shut {
            return Ok("-EPIPE".into());
        }
        let from = socket.was_written.wrapping_add(1);
        let error = self.host.readable(id).error;
        if let Some(error) = error {
            return Ok(errno(error).into());
        }
        let Some(queue) = self.host.queue(id) else {
            return Ok("-EPIPE".into());
        };
        let bytes: Vec<u8> = (0..count)
            .map(|at| stack_byte(from.wrapping_add(at)))
            .collect();
        queue.push(&bytes);
        self.host.wrote(id);
        self.socket(fd).was_written += count;
        Ok(count.to_string())
    }

    fn shutdown(&mut self, fd: u32) -> Result<String, String> {
        let id = self.stream(fd)?;
        self.socket(fd).shut = true;
        self.host.shutdown(id);
        Ok("0".into())
    }

    fn close(&mut self, fd: u32) -> Result<String, String> {
        if self.socket(fd).aborts {
            return self.abort(fd);
        }
        match self.socket(fd).kind {
            Kind::Fresh => {}
            Kind::Listener(id) => self.host.close_listener(id),
            Kind::Stream(id) => self.host.close(id),
        }
        self.sockets.open.remove(&fd);
        Ok("0".into())
    }

    fn abort(&mut self, fd: u32) -> Result<String, String> {
        let id = self.stream(fd)?;
        self.host.abort(id);
        self.sockets.open.remove(&fd);
        Ok("0".into())
    }
}

const fn errno(error: SocketError) -> &'static str {
    match error {
        SocketError::Reset => "-ECONNRESET",
        SocketError::Refused => "-ECONNREFUSED",
        SocketError::Unreachable => "-ETIMEDOUT",
        SocketError::Vanished => "-EIO",
        SocketError::Stale => "-EBADF",
    }
}

fn integer(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

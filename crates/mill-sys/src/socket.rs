//! Calls on connected sockets. All are non-blocking, go through libc's symbols (so that a preloaded stack can replace
//! them) and cost one system call.

use crate::address::{Peer, SockAddr};
use crate::listener::{Endpoint, set_int, stream_socket};
use crate::process::check;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Accepts a connection; `WouldBlock` if none waits.
pub fn accept(listener: BorrowedFd<'_>) -> io::Result<(OwnedFd, Peer)> {
    let mut address = SockAddr::empty();
    let (pointer, length) = address.as_out();
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: pointer and length describe `address`, which lives through the call.
    let descriptor = unsafe { libc::accept4(listener.as_raw_fd(), pointer, length, flags) };
    check(descriptor)?;
    // SAFETY: the kernel has just returned this descriptor, and nothing else owns it.
    Ok((unsafe { OwnedFd::from_raw_fd(descriptor) }, address.peer()))
}

/// What is set before a socket connects; `None` or false leaves the system's default.
#[derive(Clone, Copy, Debug, Default)]
pub struct ConnectorOptions<'a> {
    /// A port of 0 is chosen by the kernel at connect, so it is unique only together with the target. Any other port is
    /// used exactly, even while it is in TIME-WAIT.
    pub source: Option<Endpoint<'a>>,
    /// `IP_TRANSPARENT`: the source may be an address of another machine.
    pub transparent: bool,
    pub nodelay: bool,
    /// `SO_KEEPALIVE`.
    pub keepalive: bool,
    /// `SO_MARK`: netfilter's mark of its packets, which needs CAP_NET_ADMIN.
    pub mark: Option<u32>,
    pub receive_buffer_bytes: Option<usize>,
    pub send_buffer_bytes: Option<usize>,
}

/// Starts a connection. Costs two system calls, two more for a source, and one more for each other option. If one of
/// them fails, the socket is closed.
pub fn connect(target: Endpoint<'_>, options: &ConnectorOptions<'_>) -> io::Result<OwnedFd> {
    let address = SockAddr::new(target)?;
    let socket = stream_socket(address.family())?;
    if options.nodelay
        && let Endpoint::Ip(_) = target
    {
        set_nodelay(socket.as_fd(), true)?;
    }
    if options.keepalive {
        set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1)?;
    }
    if let Some(mark) = options.mark {
        set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MARK, &mark)?;
    }
    let buffers = [
        (libc::SO_RCVBUF, options.receive_buffer_bytes),
        (libc::SO_SNDBUF, options.send_buffer_bytes),
    ];
    for (name, bytes) in buffers {
        if let Some(bytes) = bytes {
            let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
            set_int(socket.as_fd(), libc::SOL_SOCKET, name, bytes)?;
        }
    }
    if let Some(source) = options.source {
        if options.transparent {
            set_transparent(socket.as_fd(), source)?;
        }
        bind_source(socket.as_fd(), source)?;
    }
    address.connect(socket.as_fd())?;
    Ok(socket)
}

fn set_transparent(socket: BorrowedFd<'_>, source: Endpoint<'_>) -> io::Result<()> {
    match source {
        Endpoint::Ip(SocketAddr::V4(_)) => {
            set_int(socket, libc::IPPROTO_IP, libc::IP_TRANSPARENT, 1)
        }
        Endpoint::Ip(SocketAddr::V6(_)) => {
            set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_TRANSPARENT, 1)
        }
        Endpoint::Unix(_) => Ok(()),
    }
}

fn bind_source(socket: BorrowedFd<'_>, source: Endpoint<'_>) -> io::Result<()> {
    match source {
        // The kernel has one flag for both families: the IP-level option also applies to IPv6 sockets.
        Endpoint::Ip(address) if address.port() == 0 => {
            set_int(socket, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, 1)?;
        }
        Endpoint::Ip(_) => set_int(socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?,
        Endpoint::Unix(_) => {}
    }
    SockAddr::new(source)?.bind(socket)
}

/// Receives into `buffer`; 0 is the peer's FIN.
pub fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `buffer`, which is ours through the call.
    let count = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
            0,
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends; `more` announces further bytes, so that the kernel may wait for full segments.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], more: bool) -> io::Result<usize> {
    // SAFETY: pointer and length describe `bytes`, which lives through the call.
    let count = unsafe {
        libc::send(
            socket.as_raw_fd(),
            bytes.as_ptr().cast(),
            bytes.len(),
            send_flags(more),
        )
    };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends several pieces in one call.
pub fn send_vectored(
    socket: BorrowedFd<'_>,
    pieces: &[IoSlice<'_>],
    more: bool,
) -> io::Result<usize> {
    // SAFETY: msghdr is plain data, all zero is a valid value (no name, no control).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_ptr().cast_mut().cast();
    message.msg_iovlen = pieces.len();
    // SAFETY: IoSlice has the layout of iovec (its documentation), and sendmsg only reads through it.
    let count = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, send_flags(more)) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends `count` bytes of a file from `offset` without copying them through user space. Returns less when the socket is
/// full, and 0 at the end of the file.
pub fn send_file(
    socket: BorrowedFd<'_>,
    file: BorrowedFd<'_>,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    let mut offset =
        i64::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // SAFETY: the offset's pointer is to a local that lives through the call.
    let sent =
        unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, count) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Sends FIN after all data.
pub fn shutdown_write(socket: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: shutdown(2) takes no pointer.
    check(unsafe { libc::shutdown(socket.as_raw_fd(), libc::SHUT_WR) })
}

/// `TCP_NODELAY`.
pub fn set_nodelay(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_NODELAY, i32::from(on))
}

/// Whether packets that are not full wait for more (TCP_CORK, tcp(7)), 200 ms at most; the end of it sends what waits.
pub fn set_cork(socket: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_CORK, i32::from(on))
}

/// Makes `close` discard unsent data and send RST.
pub fn set_reset_on_close(socket: BorrowedFd<'_>) -> io::Result<()> {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
}

/// The socket's pending error (a failed connect, a reset), which is cleared.
pub fn take_error(socket: BorrowedFd<'_>) -> io::Result<Option<i32>> {
    let error: i32 = option(socket, libc::SOL_SOCKET, libc::SO_ERROR)?;
    Ok(Some(error).filter(|error| *error != 0))
}

/// The mark of netfilter that its packets carry. A connection that was accepted has that of its first segment, where
/// `tcp_fwmark_accept` is on (ip-sysctl.rst).
pub fn mark(socket: BorrowedFd<'_>) -> io::Result<u32> {
    option(socket, libc::SOL_SOCKET, libc::SO_MARK)
}

/// The local address.
pub fn local_address(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut address = SockAddr::empty();
    let (pointer, length) = address.as_out();
    // SAFETY: pointer and length describe `address`, which lives through the call.
    check(unsafe { libc::getsockname(socket.as_raw_fd(), pointer, length) })?;
    Ok(address.peer())
}

/// TCP's measurements: `(rtt, rtt variation, congestion window in segments, receive space in bytes)`.
pub fn tcp_info(socket: BorrowedFd<'_>) -> io::Result<(Duration, Duration, u32, u32)> {
    let info: libc::tcp_info = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    let micros = |value: u32| Duration::from_micros(u64::from(value));
    Ok((
        micros(info.tcpi_rtt),
        micros(info.tcpi_rttvar),
        info.tcpi_snd_cwnd,
        info.tcpi_rcv_space,
    ))
}

/// The kernel's state of a TCP connection: TCP_INFO (tcp(7)), and its queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpState {
    /// The state's number (tcp_states.h): 1 is ESTABLISHED.
    pub state: u8,
    /// State of loss recovery (`tcp_ca_state`): 0 is open.
    pub recovery: u8,
    /// Successive expirations of the retransmission timer.
    pub backoff: u8,
    /// Bits of the negotiated options: 1 timestamps, 2 SACK, 4 window scaling, 8 ECN.
    pub options: u8,
    pub rto_us: u32,
    pub mss: u32,
    /// In segments.
    pub in_flight: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retransmitted: u32,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    /// In segments; `i32::MAX` before the first reduction.
    pub ssthresh: u32,
    pub cwnd: u32,
    pub receive_space: u32,
    /// In bytes.
    pub receive_queue: u32,
    pub send_queue: u32,
}

/// Reads it, in three system calls.
pub fn tcp_state(socket: BorrowedFd<'_>) -> io::Result<TcpState> {
    let info: libc::tcp_info = option(socket, libc::IPPROTO_TCP, libc::TCP_INFO)?;
    Ok(TcpState {
        state: info.tcpi_state,
        recovery: info.tcpi_ca_state,
        backoff: info.tcpi_backoff,
        options: info.tcpi_options,
        rto_us: info.tcpi_rto,
        mss: info.tcpi_snd_mss,
        in_flight: info.tcpi_unacked,
        sacked: info.tcpi_sacked,
        lost: info.tcpi_lost,
        retransmitted: info.tcpi_retrans,
        rtt_us: info.tcpi_rtt,
        rttvar_us: info.tcpi_rttvar,
        ssthresh: info.tcpi_snd_ssthresh,
        cwnd: info.tcpi_snd_cwnd,
        receive_space: info.tcpi_rcv_space,
        receive_queue: queue(socket, libc::FIONREAD)?,
        send_queue: queue(socket, libc::TIOCOUTQ)?,
    })
}

/// Bytes in a socket's receive or send queue.
fn queue(socket: BorrowedFd<'_>, which: libc::Ioctl) -> io::Result<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: FIONREAD and TIOCOUTQ write an int, which the pointer is to.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), which, &raw mut bytes) })?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// Reads an option whose value is plain data, for which all zero is valid.
pub(crate) fn option<T: Copy>(socket: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<T> {
    // SAFETY: the callers ask for plain data types only; all zero is a valid value of each.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut length = libc::socklen_t::try_from(size_of::<T>()).expect("options are small");
    // SAFETY: pointer and length describe `value`, which lives through the call.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw mut value).cast(),
            &raw mut length,
        )
    })?;
    Ok(value)
}

/// Sets an option whose value is plain data.
pub(crate) fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: i32,
    name: i32,
    value: &T,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).expect("options are small");
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: pointer and length describe `value`, which lives through the call.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, pointer, length) })
}

/// Whether the kernel could seal and open TLS records of a socket (kTLS, Documentation/networking/tls.rst): the layer "tls" can be
/// asked for. It costs two system calls; the kernel may load a module for it.
pub fn has_kernel_tls() -> bool {
    let Ok(socket) = stream_socket(libc::AF_INET) else {
        return false;
    };
    match set_option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_ULP, b"tls\0") {
        Ok(()) => true,
        // It is there, and wants a connection; without it, ENOENT.
        Err(error) => error.raw_os_error() == Some(libc::ENOTCONN),
    }
}

/// A time limit as the kernel has it.
pub(crate) fn timeval(duration: Duration) -> libc::timeval {
    libc::timeval {
        tv_sec: libc::time_t::try_from(duration.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_usec: duration.subsec_micros().into(),
    }
}

/// Writing to a connection that the peer has reset is an error, not a signal.
fn send_flags(more: bool) -> i32 {
    libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn a_source_port_that_the_system_chooses_is_chosen_when_it_connects() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let listener = match TcpListener::bind(loopback) {
                Ok(listener) => listener,
                // A machine may do without IPv6.
                Err(_) if loopback.starts_with('[') => continue,
                Err(error) => panic!("{error}"),
            };
            let source: SocketAddr = loopback.parse().unwrap();
            let target = SockAddr::new(Endpoint::Ip(listener.local_addr().unwrap())).unwrap();
            let socket = stream_socket(target.family()).unwrap();
            bind_source(socket.as_fd(), Endpoint::Ip(source)).unwrap();
            assert_eq!(local_address(socket.as_fd()).unwrap(), Peer::Ip(source));
            target.connect(socket.as_fd()).unwrap();
            assert_ne!(local_address(socket.as_fd()).unwrap(), Peer::Ip(source));
        }
    }

    #[test]
    fn the_state_of_a_connection_is_what_its_ends_have_done() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = listener.local_addr().unwrap();
        let mut near = std::net::TcpStream::connect(target).unwrap();
        let (far, _) = listener.accept().unwrap();
        io::Write::write_all(&mut near, b"hello").unwrap();
        let state = tcp_state(far.as_fd()).unwrap();
        assert_eq!(
            (state.state, state.receive_queue, state.send_queue),
            (1, 5, 0)
        );
        assert!(
            state.mss > 0 && state.cwnd > 0 && state.rto_us > 0,
            "{state:?}"
        );
        // A listener has no bytes to read.
        assert!(tcp_state(listener.as_fd()).is_err());
    }

    #[test]
    fn small_segments_wait_only_where_that_is_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Endpoint::Ip(listener.local_addr().unwrap());
        for nodelay in [false, true] {
            let options = ConnectorOptions {
                nodelay,
                ..ConnectorOptions::default()
            };
            let socket = connect(target, &options).unwrap();
            let set: i32 = option(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY).unwrap();
            assert_eq!(set != 0, nodelay);
        }
    }

    #[test]
    fn options_are_set_where_they_are_asked_for() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Endpoint::Ip(listener.local_addr().unwrap());
        let read = |options: &ConnectorOptions<'_>| {
            let socket = connect(target, options).unwrap();
            let names = [libc::SO_KEEPALIVE, libc::SO_RCVBUF, libc::SO_SNDBUF];
            names.map(|name| option::<i32>(socket.as_fd(), libc::SOL_SOCKET, name).unwrap())
        };
        let usual = read(&ConnectorOptions::default());
        assert_eq!(usual[0], 0);
        let set = read(&ConnectorOptions {
            keepalive: true,
            receive_buffer_bytes: Some(20_000),
            send_buffer_bytes: Some(30_000),
            ..ConnectorOptions::default()
        });
        // The kernel doubles what is asked for (socket(7)).
        assert_eq!(set, [1, 40_000, 60_000]);
        assert!(usual[1] != set[1] && usual[2] != set[2]);
    }

    #[test]
    fn tls_of_the_kernel_is_there_if_the_kernel_lists_it() {
        // The probe may load the module, so it comes first.
        let found = has_kernel_tls();
        let listed = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").unwrap();
        assert_eq!(found, listed.split_whitespace().any(|layer| layer == "tls"));
    }

    #[test]
    fn a_transparent_source_may_be_an_address_of_another_machine() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Endpoint::Ip(listener.local_addr().unwrap());
        let source: SocketAddr = "198.51.100.7:0".parse().unwrap();
        let connect_as = |transparent| {
            let options = ConnectorOptions {
                source: Some(Endpoint::Ip(source)),
                transparent,
                ..ConnectorOptions::default()
            };
            connect(target, &options).map_err(|error| error.raw_os_error())
        };
        let number = |result: Result<OwnedFd, Option<i32>>| result.unwrap_err();
        assert_eq!(number(connect_as(false)), Some(libc::EADDRNOTAVAIL));
        match connect_as(true) {
            Err(Some(libc::EPERM)) => eprintln!("not tested: IP_TRANSPARENT needs CAP_NET_ADMIN"),
            // The handshake goes on: its answers go elsewhere.
            Err(error) => assert_eq!(error, Some(libc::EINPROGRESS)),
            Ok(socket) => match local_address(socket.as_fd()).unwrap() {
                Peer::Ip(address) => assert_eq!(address.ip(), source.ip()),
                Peer::Unix => panic!("not an IP address"),
            },
        }
    }
}

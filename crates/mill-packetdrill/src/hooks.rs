//! The functions of the table: pointers become slices, results become errno.

use crate::interface::{Interface, PollFd};
use crate::stage::Stage;
use crate::world::World;
use crate::world::settings::Settings;
use core::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use mill_sockets::errno::Errno;

/// Socket addresses as C has them.
mod address;

/// The wire and the clock.
mod device;

/// Pointers to values.
mod memory;

/// Reading and writing.
mod transfer;

use memory::{done, input, place, stage};

/// Fills the table. The flags are those of `--so_flags`; if they make no sense the process ends, saying so.
///
/// # Safety
/// `flags` is null or a string with its zero; `table` points to a table that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn packetdrill_interface_init(flags: *const c_char, table: *mut Interface) {
    let flags = if flags.is_null() {
        ""
    } else {
        // SAFETY: packetdrill gives the string of its command line.
        let flags = unsafe { CStr::from_ptr(flags) };
        flags.to_str().unwrap_or("?")
    };
    let settings = match Settings::from_flags(flags) {
        Ok(settings) => settings,
        Err(problem) => {
            #[expect(clippy::print_stderr, reason = "C has no other way to hear of it")]
            {
                eprintln!("mill-packetdrill: {problem}");
            }
            std::process::exit(2);
        }
    };
    let stage = Box::new(Stage::new(World::new(settings)));
    let userdata = Box::into_raw(stage).cast::<c_void>();
    // SAFETY: the table is packetdrill's, aligned, and ours to fill.
    unsafe { table.write(filled(userdata)) };
}

fn filled(userdata: *mut c_void) -> Interface {
    Interface {
        userdata,
        free,
        socket,
        bind,
        listen,
        accept,
        connect,
        read: transfer::read,
        readv: transfer::readv,
        recv: transfer::recv,
        recvfrom: transfer::recvfrom,
        recvmsg: transfer::recvmsg,
        write: transfer::write,
        writev: transfer::writev,
        send: transfer::send,
        sendto: transfer::sendto,
        sendmsg: transfer::sendmsg,
        fcntl,
        ioctl,
        close,
        shutdown,
        getsockopt,
        setsockopt,
        poll,
        netdev_send: device::netdev_send,
        netdev_receive: device::netdev_receive,
        usleep: device::usleep,
        gettimeofday: device::gettimeofday,
        epoll_create,
        epoll_ctl,
        epoll_wait,
        pipe,
        splice,
    }
}

const AF_INET6: c_int = 10;
const SOCK_TYPE_MASK: c_int = 0xf;
const SOCK_STREAM: c_int = 1;
const SOCK_NONBLOCK: c_int = 0o4000;
const O_RDWR: c_int = 2;
const O_NONBLOCK: c_int = 0o4000;
const F_GETFL: c_int = 3;
const F_SETFL: c_int = 4;
const FIONREAD: c_ulong = 0x541b;
const TIOCOUTQ: c_ulong = 0x5411;

unsafe extern "C" fn free(userdata: *mut c_void) {
    // SAFETY: it was made by `packetdrill_interface_init`, and packetdrill frees it once, when its threads are done.
    drop(unsafe { Box::from_raw(userdata.cast::<Stage>()) });
}

unsafe extern "C" fn socket(
    userdata: *mut c_void,
    domain: c_int,
    kind: c_int,
    _protocol: c_int,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    if kind & SOCK_TYPE_MASK != SOCK_STREAM {
        return done(Err(Errno::NOT_SUPPORTED));
    }
    let waits = kind & SOCK_NONBLOCK == 0;
    done(Ok(
        stage.call(|world| world.socket(domain == AF_INET6, waits))
    ))
}

unsafe extern "C" fn bind(
    userdata: *mut c_void,
    fd: c_int,
    address: *const c_void,
    len: c_uint,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are the address.
    let bytes = unsafe { input(address, len as usize) };
    done(
        address::parse(bytes)
            .and_then(|address| stage.call(|world| world.bind(fd, address)))
            .map(|()| 0),
    )
}

unsafe extern "C" fn listen(userdata: *mut c_void, fd: c_int, backlog: c_int) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    done(stage.call(|world| world.listen(fd, backlog)).map(|()| 0))
}

unsafe extern "C" fn accept(
    userdata: *mut c_void,
    fd: c_int,
    address: *mut c_void,
    len: *mut c_uint,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    let accepted = stage.blocking(|world| {
        let accepted = world.accept(fd)?;
        if accepted.is_none() && !world.waits(fd)? {
            return Err(Errno::AGAIN);
        }
        Ok(accepted)
    });
    done(accepted.map(|(number, peer)| {
        // SAFETY: both pointers are null or packetdrill's own, with room for an address.
        unsafe { address::store(peer, address, len) };
        number
    }))
}

unsafe extern "C" fn connect(
    userdata: *mut c_void,
    fd: c_int,
    address: *const c_void,
    len: c_uint,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are the address.
    let bytes = unsafe { input(address, len as usize) };
    let connected = address::parse(bytes)
        .and_then(|address| stage.blocking(|world| world.connect(fd, address)));
    done(connected.map(|()| 0))
}

unsafe extern "C" fn fcntl(
    userdata: *mut c_void,
    fd: c_int,
    command: c_int,
    argument: c_long,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // A C int is passed: what stands above its 32 bits means nothing.
    #[expect(clippy::cast_possible_truncation, reason = "see above")]
    let flags = argument as c_int;
    done(stage.call(|world| {
        match command {
            F_GETFL => world
                .waits(fd)
                .map(|waits| if waits { O_RDWR } else { O_RDWR | O_NONBLOCK }),
            F_SETFL => world.set_waits(fd, flags & O_NONBLOCK == 0).map(|()| 0),
            _ => Err(Errno::INVALID),
        }
    }))
}

unsafe extern "C" fn ioctl(
    userdata: *mut c_void,
    fd: c_int,
    request: c_ulong,
    result: *mut c_int,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    let waiting = stage.call(|world| match request {
        FIONREAD => world.waiting(fd, false),
        TIOCOUTQ => world.waiting(fd, true),
        _ => Err(Errno::INVALID),
    });
    done(waiting.map(|bytes| {
        // SAFETY: both requests come with a pointer to an int.
        if let Some(result) = unsafe { place(result) } {
            *result = c_int::try_from(bytes).unwrap_or(c_int::MAX);
        }
        0
    }))
}

unsafe extern "C" fn close(userdata: *mut c_void, fd: c_int) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    done(stage.call(|world| world.close(fd)).map(|()| 0))
}

unsafe extern "C" fn shutdown(userdata: *mut c_void, fd: c_int, how: c_int) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    done(stage.call(|world| world.shutdown(fd, how)).map(|()| 0))
}

unsafe extern "C" fn getsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut c_uint,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: the length is packetdrill's own.
    let Some(len) = (unsafe { place(len) }) else {
        return done(Err(Errno::INVALID));
    };
    // SAFETY: `len` bytes are there for the value.
    let into = unsafe { memory::output(value, *len as usize) };
    done(
        stage
            .call(|world| world.option(fd, level, name))
            .map(|bytes| {
                let count = bytes.len().min(into.len());
                into[..count].copy_from_slice(&bytes[..count]);
                *len = c_uint::try_from(count).unwrap_or(c_uint::MAX);
                0
            }),
    )
}

unsafe extern "C" fn setsockopt(
    userdata: *mut c_void,
    fd: c_int,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: c_uint,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    // SAFETY: `len` bytes are the value.
    let value = unsafe { input(value, len as usize) };
    done(
        stage
            .call(|world| world.set_option(fd, level, name, value))
            .map(|()| 0),
    )
}

unsafe extern "C" fn poll(
    userdata: *mut c_void,
    fds: *mut PollFd,
    count: c_ulong,
    timeout: c_int,
) -> c_int {
    // SAFETY: packetdrill hands back what it was given.
    let stage = unsafe { stage(userdata) };
    let count = usize::try_from(count).unwrap_or(0);
    // SAFETY: `count` entries are packetdrill's own.
    let fds = unsafe { memory::places(fds, count) };
    let polled = stage.blocking(|world| {
        let mut ready = 0;
        for entry in &mut *fds {
            entry.revents = world.poll(entry.fd, entry.events)?;
            ready += c_int::from(entry.revents != 0);
        }
        Ok((ready > 0 || timeout == 0).then_some(ready))
    });
    // A caller that gives a time learns that it has passed: nothing has come, and nothing would come before the next event.
    done(polled.or_else(|error| {
        if error == Errno::AGAIN {
            Ok(0)
        } else {
            Err(error)
        }
    }))
}

unsafe extern "C" fn epoll_create(_userdata: *mut c_void, _size: c_int) -> c_int {
    done(Err(Errno::NO_CALL))
}

unsafe extern "C" fn epoll_ctl(
    _userdata: *mut c_void,
    _epoll: c_int,
    _operation: c_int,
    _fd: c_int,
    _event: *mut c_void,
) -> c_int {
    done(Err(Errno::NO_CALL))
}

unsafe extern "C" fn epoll_wait(
    _userdata: *mut c_void,
    _epoll: c_int,
    _events: *mut c_void,
    _count: c_int,
    _timeout: c_int,
) -> c_int {
    done(Err(Errno::NO_CALL))
}

unsafe extern "C" fn pipe(_userdata: *mut c_void, _fds: *mut c_int) -> c_int {
    done(Err(Errno::NO_CALL))
}

unsafe extern "C" fn splice(
    _userdata: *mut c_void,
    _from: c_int,
    _from_offset: *mut i64,
    _to: c_int,
    _to_offset: *mut i64,
    _len: usize,
    _flags: c_uint,
) -> c_int {
    done(Err(Errno::NO_CALL))
}

//! The plug-in as packetdrill uses it: through the table of functions.

use core::ffi::{c_int, c_longlong, c_uint, c_void};
use core::mem::MaybeUninit;
use core::ptr;
use mill_packetdrill::interface::{Interface, TimeVal};
use mill_packetdrill::packetdrill_interface_init;

struct Table(*const Interface);

impl Table {
    fn new() -> Self {
        let mut table = MaybeUninit::<Interface>::uninit();
        // SAFETY: no flags, and a table that may be written.
        unsafe { packetdrill_interface_init(ptr::null(), table.as_mut_ptr()) };
        // SAFETY: the call has filled it.
        let table = unsafe { table.assume_init() };
        Self(Box::into_raw(Box::new(table)))
    }

    fn functions(&self) -> &Interface {
        // SAFETY: a leaked box, which nothing changes.
        unsafe { &*self.0 }
    }

    fn listen(&self) -> c_int {
        let table = self.functions();
        // SAFETY: as packetdrill calls it.
        let fd = unsafe { (table.socket)(table.userdata, 2, 1, 6) };
        // SAFETY: as packetdrill calls it.
        let listened = unsafe { (table.listen)(table.userdata, fd, 1) };
        assert_eq!(listened, 0);
        fd
    }

    fn accept(&self, fd: c_int) -> c_int {
        let table = self.functions();
        let (into, len) = (ptr::null_mut::<c_void>(), ptr::null_mut::<c_uint>());
        // SAFETY: both pointers may be null.
        unsafe { (table.accept)(table.userdata, fd, into, len) }
    }

    fn send(&self, packet: &[u8]) {
        let table = self.functions();
        let bytes = packet.as_ptr().cast::<c_void>();
        // SAFETY: the bytes are there.
        let sent = unsafe { (table.netdev_send)(table.userdata, bytes, packet.len()) };
        assert_eq!(sent, 0);
    }

    /// When the next packet left, and its bytes.
    fn receive(&self) -> (c_longlong, Vec<u8>) {
        let table = self.functions();
        let mut packet = vec![0; 2000];
        let mut len = packet.len();
        let mut micros = 0;
        let into = packet.as_mut_ptr().cast::<c_void>();
        // SAFETY: there are `len` bytes.
        let received =
            unsafe { (table.netdev_receive)(table.userdata, into, &mut len, &mut micros) };
        assert_eq!(received, 0);
        packet.truncate(len);
        (micros, packet)
    }

    fn now(&self) -> i64 {
        let table = self.functions();
        let mut now = TimeVal { sec: 0, usec: 0 };
        // SAFETY: `now` may be written.
        let looked = unsafe { (table.gettimeofday)(table.userdata, &mut now, ptr::null_mut()) };
        assert_eq!(looked, 0);
        now.sec * 1_000_000 + now.usec
    }

    fn sleep(&self, micros: c_uint) {
        let table = self.functions();
        // SAFETY: no pointers.
        unsafe { (table.usleep)(table.userdata, micros) };
    }
}

/// A segment from port 9 of 192.0.2.1 to port 8080 of 192.168.0.1, which are packetdrill's own addresses.
fn segment(flags: u8, seq: u32, ack: u32) -> Vec<u8> {
    let mut tcp = vec![0, 9, 0x1f, 0x90];
    tcp.extend(seq.to_be_bytes());
    tcp.extend(ack.to_be_bytes());
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    let ends = [192, 0, 2, 1, 192, 168, 0, 1];
    let sum = checksum(&[&ends[..], &[0, 6, 0, 20], &tcp].concat());
    tcp[16..18].copy_from_slice(&sum);
    let mut ip = [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0], &ends[..]].concat();
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    ip.extend(tcp);
    ip
}

fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    (!u16::try_from(folded).expect("few words")).to_be_bytes()
}

const SYN: u8 = 2;
const ACK: u8 = 16;

#[test]
fn a_handshake_goes_through_and_packets_say_when_they_left() {
    let table = Table::new();
    let fd = table.listen();
    let start = table.now();
    table.sleep(100_000);
    table.send(&segment(SYN, 100, 0));
    let (at, syn_ack) = table.receive();
    assert!((100_000..100_100).contains(&(at - start)), "{at} {start}");
    assert_eq!(syn_ack[20 + 13], SYN | ACK);
    assert_eq!(table.accept(fd), -1);
    let iss = u32::from_be_bytes(syn_ack[24..28].try_into().expect("four bytes"));
    table.send(&segment(ACK, 101, iss.wrapping_add(1)));
    assert!(table.accept(fd) > fd);
}

#[test]
fn waiting_for_a_packet_lets_time_pass_to_the_retransmission() {
    let table = Table::new();
    table.listen();
    table.send(&segment(SYN, 100, 0));
    let (first, syn_ack) = table.receive();
    let (second, again) = table.receive();
    assert_eq!(syn_ack[20..], again[20..]);
    assert!((999_000..1_001_000).contains(&(second - first)));
}

#[test]
fn a_call_on_the_thread_of_the_script_never_blocks() {
    let table = Table::new();
    let fd = table.listen();
    assert_eq!(table.accept(fd), -1);
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(11));
}

#[test]
fn where_nothing_will_come_a_packet_without_bytes_says_so() {
    let table = Table::new();
    table.listen();
    assert!(table.receive().1.is_empty());
}

//! How packets are to be treated on their way (RFC 2474): each as its connection says, or its listener.

use super::pair::{Pair, SERVER_V4, SERVER_V6, turn_of, write};
use crate::socket::{ListenOptions, SocketOptions};
use alloc::collections::BTreeSet;
use core::net::SocketAddr;
use mill_tcp::config::Dscp;

fn with(ipv4: u8, ipv6: u8) -> SocketOptions {
    SocketOptions {
        dscp: Dscp { ipv4, ipv6 },
        ..SocketOptions::default()
    }
}

/// The codepoints of what the ends send until nothing moves, the client's and the server's.
fn codepoints(pair: &mut Pair, is_ipv4: bool) -> [BTreeSet<u8>; 2] {
    let mut found = [BTreeSet::new(), BTreeSet::new()];
    let of = |bytes: &[u8]| match (bytes[12..14] == [8, 0], bytes[12..14] == [0x86, 0xdd]) {
        (true, _) if is_ipv4 => Some(bytes[15] >> 2),
        (_, true) if !is_ipv4 && bytes[20] == 6 => Some((bytes[14] << 4 | bytes[15] >> 4) >> 2),
        _ => None,
    };
    for _ in 0..100 {
        turn_of(&mut pair.client, &mut pair.client_link, pair.now);
        let sent = pair.client_link.sent.iter();
        found[0].extend(sent.filter_map(|frame| of(&frame.bytes)));
        pair.client_link.carry(&mut pair.server_link);
        turn_of(&mut pair.server, &mut pair.server_link, pair.now);
        let sent = pair.server_link.sent.iter();
        found[1].extend(sent.filter_map(|frame| of(&frame.bytes)));
        pair.server_link.carry(&mut pair.client_link);
    }
    found
}

#[test]
fn packets_have_the_codepoint_of_their_connection_or_listener() {
    for (target, is_ipv4) in [(SERVER_V4, true), (SERVER_V6, false)] {
        let mut pair = Pair::new();
        let address: SocketAddr = target.parse().unwrap();
        let options = ListenOptions {
            each: with(10, 20),
            ..ListenOptions::default()
        };
        let listener = pair.server.listen(address, &options).unwrap();
        let of_family = |dscp: [u8; 2]| BTreeSet::from([dscp[usize::from(!is_ipv4)]]);
        let client = pair
            .client
            .connect_with(address, None, true, with(46, 63), 7, |_| true);
        let client = client.unwrap();
        // SYN, SYN-ACK and its acknowledgement.
        let [sent, answered] = codepoints(&mut pair, is_ipv4);
        assert_eq!(sent, of_family([46, 63]));
        assert_eq!(answered, of_family([10, 20]));
        let server = pair.server.accept(listener, 9).unwrap();
        pair.server.set_socket_options(server, with(8, 9));
        pair.client.set_socket_options(client, with(0, 0));
        write(&mut pair.client, client, b"request");
        write(&mut pair.server, server, b"answer");
        let [sent, answered] = codepoints(&mut pair, is_ipv4);
        assert_eq!(sent, of_family([0, 0]));
        assert_eq!(answered, of_family([8, 9]));
    }
}

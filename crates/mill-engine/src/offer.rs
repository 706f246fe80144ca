//! Listening sockets that another thread or process made for this engine.
//!
//! The key of an offered descriptor is text: `SHARE ADDRESS`, SHARE being the number of the socket among those
//! that share the port, or `-`; ADDRESS as `127.0.0.1:80`, `[::]:80` or `unix:/path`.

use mill_runtime::address::Address;

/// The key under which a listening socket is offered and asked for.
pub fn encode(address: &Address, share: Option<u32>) -> Vec<u8> {
    let mut key = match share {
        Some(share) => format!("{share} ").into_bytes(),
        None => b"- ".to_vec(),
    };
    match address {
        Address::Ip(address) => key.extend_from_slice(address.to_string().as_bytes()),
        Address::Unix(path) => {
            key.extend_from_slice(b"unix:");
            key.extend_from_slice(path);
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_one_port_have_different_keys() {
        let address = Address::Ip("[::]:80".parse().unwrap());
        assert_eq!(encode(&address, None), b"- [::]:80");
        assert_eq!(encode(&address, Some(3)), b"3 [::]:80");
        assert_eq!(
            encode(&Address::Unix(b"/a"[..].into()), Some(0)),
            b"0 unix:/a"
        );
    }
}

//! Names of groups for the exchange of keys (RFC 8446 4.2.7).

/// The name that OpenSSL has for a group; `None` for one that it does not know.
pub fn group_name(number: u16) -> Option<&'static str> {
    Some(match number {
        0x0017 => "prime256v1",
        0x0018 => "secp384r1",
        0x0019 => "secp521r1",
        0x001d => "X25519",
        0x001e => "X448",
        0x0100 => "ffdhe2048",
        0x0101 => "ffdhe3072",
        0x0102 => "ffdhe4096",
        0x0103 => "ffdhe6144",
        0x0104 => "ffdhe8192",
        0x11eb => "SecP256r1MLKEM768",
        0x11ec => "X25519MLKEM768",
        0x11ed => "SecP384r1MLKEM1024",
        _ => return None,
    })
}

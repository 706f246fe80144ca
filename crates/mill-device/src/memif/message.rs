//! The messages of memif's control channel. Each is 128 bytes, in native byte order and without padding.
//!
//! ```text
//! | type, 2 | what belongs to the type                                                                  | zeros |
//!   1 ack
//!   2 hello       name 32, version min 2, max 2, region max 2, M2S ring max 2, S2M ring max 2, log2 ring max 1
//!   3 init        version 2, id 4, mode 1, secret 24, name 32
//!   4 add region  index 2, size 8                                                        with a file in memory
//!   5 add ring    flags 2, index 2, region 2, offset 4, log2 of size 1, private header 2 with an eventfd
//!   6 connect     name 32
//!   7 connected   name 32
//!   8 disconnect  code 4, reason 96
//! ```
//!
//! S2M is the direction from slave to master, M2S the other.

use std::fmt;

/// Bytes of every message.
pub const MESSAGE_BYTES: usize = 128;

/// A message of the control channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// The master has accepted an init, a region or a ring.
    Ack,
    Hello(Hello),
    Init(Init),
    AddRegion(AddRegion),
    AddRing(AddRing),
    /// The slave has offered everything.
    Connect(Text<32>),
    /// The master has mapped everything.
    Connected(Text<32>),
    Disconnect {
        code: u32,
        reason: Text<96>,
    },
}

/// The limits of a master; the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    pub name: Text<32>,
    pub version_min: u16,
    pub version_max: u16,
    /// The highest index of a region, of a ring from and of a ring to the slave.
    pub region_max: u16,
    pub m2s_ring_max: u16,
    pub s2m_ring_max: u16,
    pub log2_ring_size_max: u8,
}

/// The interface that a slave wants.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Init {
    pub version: u16,
    pub id: u32,
    /// 0 is Ethernet, 1 IP, 2 punt and inject.
    pub mode: u8,
    pub secret: [u8; 24],
    pub name: Text<32>,
}

/// Memory of the slave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRegion {
    pub index: u16,
    pub size_bytes: u64,
}

/// A ring in the slave's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRing {
    pub is_s2m: bool,
    pub index: u16,
    pub region: u16,
    pub offset: u32,
    pub log2_size: u8,
    pub private_header_bytes: u16,
}

/// Text in a field of fixed size, zeros behind it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Text<const N: usize>([u8; N]);

/// Why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Not 128 bytes.
    Length(usize),
    Type(u16),
}

impl Message {
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let bytes: &[u8; MESSAGE_BYTES] = bytes
            .try_into()
            .map_err(|_| Malformed::Length(bytes.len()))?;
        let mut fields = Fields(bytes);
        Ok(match fields.u16() {
            1 => Self::Ack,
            2 => Self::Hello(Hello {
                name: fields.text(),
                version_min: fields.u16(),
                version_max: fields.u16(),
                region_max: fields.u16(),
                m2s_ring_max: fields.u16(),
                s2m_ring_max: fields.u16(),
                log2_ring_size_max: fields.u8(),
            }),
            3 => Self::Init(Init {
                version: fields.u16(),
                id: fields.u32(),
                mode: fields.u8(),
                secret: fields.take(),
                name: fields.text(),
            }),
            4 => Self::AddRegion(AddRegion {
                index: fields.u16(),
                size_bytes: u64::from_ne_bytes(fields.take()),
            }),
            5 => Self::AddRing(AddRing {
                is_s2m: fields.u16() & FLAG_S2M != 0,
                index: fields.u16(),
                region: fields.u16(),
                offset: fields.u32(),
                log2_size: fields.u8(),
                private_header_bytes: fields.u16(),
            }),
            6 => Self::Connect(fields.text()),
            7 => Self::Connected(fields.text()),
            8 => Self::Disconnect {
                code: fields.u32(),
                reason: fields.text(),
            },
            other => return Err(Malformed::Type(other)),
        })
    }

    pub fn emit(&self) -> [u8; MESSAGE_BYTES] {
        let mut out = Emitter::default();
        match *self {
            Self::Ack => out.put(&1_u16.to_ne_bytes()),
            Self::Hello(hello) => {
                out.put(&2_u16.to_ne_bytes());
                out.put(&hello.name.0);
                out.put(&hello.version_min.to_ne_bytes());
                out.put(&hello.version_max.to_ne_bytes());
                out.put(&hello.region_max.to_ne_bytes());
                out.put(&hello.m2s_ring_max.to_ne_bytes());
                out.put(&hello.s2m_ring_max.to_ne_bytes());
                out.put(&[hello.log2_ring_size_max]);
            }
            Self::Init(init) => {
                out.put(&3_u16.to_ne_bytes());
                out.put(&init.version.to_ne_bytes());
                out.put(&init.id.to_ne_bytes());
                out.put(&[init.mode]);
                out.put(&init.secret);
                out.put(&init.name.0);
            }
            Self::AddRegion(region) => {
                out.put(&4_u16.to_ne_bytes());
                out.put(&region.index.to_ne_bytes());
                out.put(&region.size_bytes.to_ne_bytes());
            }
            Self::AddRing(ring) => {
                out.put(&5_u16.to_ne_bytes());
                let flags = if ring.is_s2m { FLAG_S2M } else { 0 };
                out.put(&flags.to_ne_bytes());
                out.put(&ring.index.to_ne_bytes());
                out.put(&ring.region.to_ne_bytes());
                out.put(&ring.offset.to_ne_bytes());
                out.put(&[ring.log2_size]);
                out.put(&ring.private_header_bytes.to_ne_bytes());
            }
            Self::Connect(name) => {
                out.put(&6_u16.to_ne_bytes());
                out.put(&name.0);
            }
            Self::Connected(name) => {
                out.put(&7_u16.to_ne_bytes());
                out.put(&name.0);
            }
            Self::Disconnect { code, reason } => {
                out.put(&8_u16.to_ne_bytes());
                out.put(&code.to_ne_bytes());
                out.put(&reason.0);
            }
        }
        out.bytes
    }
}

impl<const N: usize> Text<N> {
    /// As much of `text` as leaves room for a terminating zero.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; N];
        let room = N.saturating_sub(1);
        for (to, from) in bytes.iter_mut().zip(text.bytes().take(room)) {
            *to = from;
        }
        Self(bytes)
    }

    /// The text up to the first zero, with bytes that a terminal could interpret replaced.
    pub fn to_text(self) -> String {
        let bytes = self.0.split(|byte| *byte == 0).next().unwrap_or_default();
        String::from_utf8_lossy(bytes)
            .chars()
            .map(|letter| if letter.is_control() { '?' } else { letter })
            .collect()
    }

    pub fn starts_with(&self, text: &str) -> bool {
        self.0.starts_with(text.as_bytes())
    }
}

impl<const N: usize> fmt::Debug for Text<N> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:?}", self.to_text())
    }
}

/// Does not print the secret.
impl fmt::Debug for Init {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Init")
            .field("version", &self.version)
            .field("id", &self.id)
            .field("mode", &self.mode)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A ring's flag: the ring carries the slave's frames.
const FLAG_S2M: u16 = 1;

/// The rest of a message that is being parsed.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    /// The longest message has 102 bytes, so no field exceeds the end.
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let Some((field, rest)) = self.0.split_first_chunk() else {
            debug_assert!(false, "a message's fields fit into it");
            return [0; N];
        };
        self.0 = rest;
        *field
    }

    fn u8(&mut self) -> u8 {
        let [byte] = self.take();
        byte
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn text<const N: usize>(&mut self) -> Text<N> {
        Text(self.take())
    }
}

struct Emitter {
    bytes: [u8; MESSAGE_BYTES],
    len: usize,
}

impl Default for Emitter {
    fn default() -> Self {
        Self {
            bytes: [0; MESSAGE_BYTES],
            len: 0,
        }
    }
}

impl Emitter {
    fn put(&mut self, field: &[u8]) {
        let to = self
            .bytes
            .get_mut(self.len..)
            .and_then(|rest| rest.get_mut(..field.len()));
        debug_assert!(to.is_some(), "a message's fields fit into it");
        if let Some(to) = to {
            to.copy_from_slice(field);
            self.len += field.len();
        }
    }
}

#[cfg(test)]
mod tests;

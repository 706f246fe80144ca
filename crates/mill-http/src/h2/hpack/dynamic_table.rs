//! The dynamic table: RFC 7541 2.3.2 and 4.

use alloc::boxed::Box;
use alloc::collections::VecDeque;

/// The fields that one direction of a connection has added, the latest first. Its bytes are bounded.
#[derive(Debug)]
pub(super) struct DynamicTable {
    fields: VecDeque<Field>,
    /// As RFC 7541 4.1 counts them.
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Field {
    /// Name and value.
    text: Box<[u8]>,
    name_len: usize,
}

impl DynamicTable {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self {
            fields: VecDeque::new(),
            bytes: 0,
            bytes_max,
        }
    }

    /// The field of an index that counts from 0, the latest.
    pub(super) fn field(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let field = self.fields.get(index)?;
        field.text.split_at_checked(field.name_len)
    }

    /// The index of this name, and whether the value is the same too.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let mut of_name = None;
        for (index, field) in self.fields.iter().enumerate() {
            let Some((known, known_value)) = field.text.split_at_checked(field.name_len) else {
                continue;
            };
            if known == name {
                if known_value == value {
                    return Some((index, true));
                }
                of_name = of_name.or(Some((index, false)));
            }
        }
        of_name
    }

    /// Adds a field, for which older ones make room. One that is larger than the table empties it.
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8]) {
        let size = size(name, value);
        if size > self.bytes_max {
            self.fields.clear();
            self.bytes = 0;
            return;
        }
        self.evict(self.bytes_max - size);
        self.bytes += size;
        self.fields.push_front(Field {
            text: [name, value].concat().into(),
            name_len: name.len(),
        });
    }

    pub(super) fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.evict(bytes_max);
    }

    pub(super) const fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    fn evict(&mut self, most: usize) {
        while self.bytes > most {
            let Some(oldest) = self.fields.pop_back() else {
                return;
            };
            self.bytes -= oldest.text.len() + OVERHEAD_BYTES;
        }
    }
}

/// What a field takes up in the table.
pub(super) const fn size(name: &[u8], value: &[u8]) -> usize {
    name.len() + value.len() + OVERHEAD_BYTES
}

/// RFC 7541 4.1.
const OVERHEAD_BYTES: usize = 32;

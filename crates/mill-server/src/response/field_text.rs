//! The bytes of a field: short ones in place, others shared with the head that they stand in, or owned.

use mill_config::Text;
use mill_http::span::Span;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// A field's name or value. Making one costs no allocation, except of long bytes that nothing else holds.
#[derive(Clone)]
pub struct FieldText(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(&'static [u8]),
    /// The first so many bytes.
    Short(u8, [u8; SHORT_BYTES_MAX]),
    Owned(Vec<u8>),
    /// Of the configuration.
    Configured(Text),
    /// A part of the head of an upstream server's answer.
    Part(Rc<Vec<u8>>, Span),
}

/// Bytes that fit into the place of the others: a date, or the tag of a file.
const SHORT_BYTES_MAX: usize = 30;

impl FieldText {
    /// A copy.
    pub fn copy(bytes: &[u8]) -> Self {
        let mut short = [0; SHORT_BYTES_MAX];
        match (short.get_mut(..bytes.len()), u8::try_from(bytes.len())) {
            (Some(place), Ok(len)) => {
                place.copy_from_slice(bytes);
                Self(Kind::Short(len, short))
            }
            _ => Self(Kind::Owned(bytes.to_vec())),
        }
    }

    /// A part of a head.
    pub fn part(head: &Rc<Vec<u8>>, part: Span) -> Self {
        Self(Kind::Part(Rc::clone(head), part))
    }

    /// The head that it is a part of, if it is one.
    pub(super) const fn in_head(&self) -> Option<(&Rc<Vec<u8>>, Span)> {
        match &self.0 {
            Kind::Part(head, part) => Some((head, *part)),
            _ => None,
        }
    }

    /// The bytes, to be changed.
    pub fn to_mut(&mut self) -> &mut Vec<u8> {
        if !matches!(self.0, Kind::Owned(_)) {
            self.0 = Kind::Owned(self.to_vec());
        }
        match &mut self.0 {
            Kind::Owned(bytes) => bytes,
            _ => unreachable!("it was made owned above"),
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        match self.0 {
            Kind::Owned(bytes) => bytes,
            _ => self.to_vec(),
        }
    }
}

impl Deref for FieldText {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Kind::Fixed(bytes) => bytes,
            Kind::Short(len, bytes) => bytes.get(..usize::from(*len)).unwrap_or_default(),
            Kind::Owned(bytes) => bytes,
            Kind::Configured(text) => text,
            Kind::Part(head, part) => part.of(head),
        }
    }
}

impl From<Vec<u8>> for FieldText {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Kind::Owned(bytes))
    }
}

impl From<&Text> for FieldText {
    fn from(text: &Text) -> Self {
        Self(Kind::Configured(text.clone()))
    }
}

impl From<&'static str> for FieldText {
    fn from(text: &'static str) -> Self {
        Self(Kind::Fixed(text.as_bytes()))
    }
}

impl<const LEN: usize> From<[u8; LEN]> for FieldText {
    fn from(bytes: [u8; LEN]) -> Self {
        Self::copy(&bytes)
    }
}

impl PartialEq for FieldText {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for FieldText {}

impl fmt::Debug for FieldText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}", String::from_utf8_lossy(self))
    }
}

const _: () = assert!(size_of::<FieldText>() <= 32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_gives_its_bytes() {
        let head = Rc::new(b"Name: value\r\n".to_vec());
        let short = [b'a'; SHORT_BYTES_MAX];
        let long = [b'a'; SHORT_BYTES_MAX + 1];
        for (text, expected) in [
            (FieldText::from("fixed"), &b"fixed"[..]),
            (FieldText::copy(b""), b""),
            (FieldText::copy(&short), &short),
            (FieldText::copy(&long), &long),
            (FieldText::from(b"owned".to_vec()), b"owned"),
            (FieldText::from(&Text::from(&b"text"[..])), b"text"),
            (FieldText::part(&head, Span::between(6, 11)), b"value"),
        ] {
            assert_eq!(&*text, expected);
            let mut changed = text.clone();
            changed.to_mut().push(b'!');
            assert_eq!(changed.into_vec(), [expected, b"!"].concat());
            assert_eq!(text.into_vec(), expected);
        }
        assert_eq!(&**head, b"Name: value\r\n");
    }
}

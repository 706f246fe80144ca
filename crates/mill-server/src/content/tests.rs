//! The length of a content before it is pulled. Pulling it needs a worker: `tests/it` does that.

use super::*;

#[test]
fn the_length_is_known_until_it_is_compressed() {
    let mut content: Content<()> = Content::parts(vec![
        Part::Bytes(Shared::from(*b"head"), 0..4),
        Part::File {
            file: (),
            offset: 7,
            len: 10,
        },
        Part::Bytes(Shared::from(*b"-end-"), 1..4),
    ]);
    assert_eq!(content.len(), Some(17));
    content.compress(1);
    assert_eq!((content.len(), content.compression()), (None, Some(1)));
    assert!(!content.is_exhausted());
}

#[test]
fn absent_content_and_empty_parts_are_exhausted_at_once() {
    let check = |content: Content<()>, is_absent: bool| {
        assert_eq!((content.len(), content.is_absent()), (Some(0), is_absent));
        assert!(content.is_exhausted() && content.is_empty());
    };
    check(Content::absent(), true);
    check(Content::bytes([]), false);
    check(Content::file((), 3, 0), false);
    check(Content::parts(Vec::new()), false);
}

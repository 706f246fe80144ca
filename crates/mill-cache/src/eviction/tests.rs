//! The queues by themselves: what one eviction costs, and what they count.

use std::sync::Arc;
use std::time::Duration;

use super::{LOOKS_MAX, Queues};
use crate::content::ContentWriter;
use crate::key::{Key, Seed};
use crate::ledger::{Ledger, Reservation};
use crate::object::{Object, Parts};

fn object(number: u64) -> Arc<Object<()>> {
    let reservation = Reservation::new(Arc::new(Ledger::new(u64::MAX)));
    let (mut writer, _) = ContentWriter::new(Some(0), 0, reservation);
    writer.finish().unwrap();
    let parts = Parts {
        meta: (),
        content: writer.content().clone(),
        tags: Vec::new(),
        born: 1,
        serial: number,
        now: Duration::ZERO,
    };
    let bytes = number.to_le_bytes();
    Arc::new(Object::new(Key::new(Seed([1, 2]), &bytes).unwrap(), parts))
}

#[test]
fn one_eviction_looks_at_a_bounded_number_of_objects() {
    for count in [1, 10, 5000] {
        // The small queue is due from its first byte: all of it would move on before the first object goes.
        let mut queues = Queues::new(0);
        let objects: Vec<_> = (0..count).map(object).collect();
        for object in &objects {
            queues.enter_whole(object.clone());
            object.set_uses(3);
        }
        let bytes = queues.bytes();
        let victim = queues.victim().unwrap();
        let uses: u64 = objects.iter().map(|object| u64::from(object.uses())).sum();
        assert!(uses + LOOKS_MAX as u64 >= 3 * count, "{uses} of {count}");
        assert_eq!((queues.count(), queues.bytes()), (count, bytes));
        queues.leave(&victim);
        assert_eq!(queues.bytes(), bytes - victim.charge());
    }
}

#[test]
fn queues_without_whole_objects_have_no_victim() {
    let mut queues = Queues::new(0);
    assert!(queues.victim().is_none());
    queues.enter_growing(object(1));
    assert!(queues.victim().is_none());
    assert_eq!(
        (queues.count(), queues.growing(), queues.bytes()),
        (1, 1, 0)
    );
}

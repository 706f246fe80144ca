//! A bad wire, for tests: so many of a million packets in each direction.

use super::{StackOption, Value, option_of};
use crate::specification::device::Devices;

pub(super) const OPTIONS: &[StackOption] = &[
    option_of(
        Devices::TAP,
        "loss",
        Value::Share(|to| &mut to.impairment.loss_ppm),
        "0%",
        "a bad wire for tests: packets that vanish, in each direction",
    ),
    option_of(
        Devices::TAP,
        "reorder",
        Value::Share(|to| &mut to.impairment.reorder_ppm),
        "0%",
        "… that others overtake",
    ),
    option_of(
        Devices::TAP,
        "duplicate",
        Value::Share(|to| &mut to.impairment.duplicate_ppm),
        "0%",
        "… that come twice",
    ),
    option_of(
        Devices::TAP,
        "corrupt",
        Value::Share(|to| &mut to.impairment.corrupt_ppm),
        "0%",
        "… with one bit turned over",
    ),
    option_of(
        Devices::TAP,
        "seed",
        Value::Seed(|to| &mut to.impairment.seed),
        "0",
        "the same bad luck again",
    ),
];

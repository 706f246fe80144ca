//! An impaired wire, for tests: rates in millionths of the packets in each direction.

use super::{StackOption, Value, option_of};
use crate::specification::device::Devices;

pub(super) const OPTIONS: &[StackOption] = &[
    option_of(
        Devices::TAP,
        "loss",
        Value::Share(|to| &mut to.impairment.loss_ppm),
        "0%",
        "an impaired wire for tests: packets that are lost, in each direction",
    ),
    option_of(
        Devices::TAP,
        "reorder",
        Value::Share(|to| &mut to.impairment.reorder_ppm),
        "0%",
        "… that are overtaken by others",
    ),
    option_of(
        Devices::TAP,
        "duplicate",
        Value::Share(|to| &mut to.impairment.duplicate_ppm),
        "0%",
        "… that are duplicated",
    ),
    option_of(
        Devices::TAP,
        "corrupt",
        Value::Share(|to| &mut to.impairment.corrupt_ppm),
        "0%",
        "… with one bit inverted",
    ),
    option_of(
        Devices::TAP,
        "seed",
        Value::Seed(|to| &mut to.impairment.seed),
        "0",
        "seed of the random choices, which repeat for the same seed",
    ),
];

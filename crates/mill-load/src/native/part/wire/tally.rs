//! Counters as JSON and back.

use crate::failure::FailureKind;
use crate::tally::Tally;
use serde_json::{Map, Value, json};

pub(super) fn emit(tally: &Tally) -> Value {
    let mut tally = *tally;
    let mut map: Map<String, Value> = counters(&mut tally)
        .into_iter()
        .map(|(name, value)| (String::from(name), json!(*value)))
        .collect();
    let failures: Map<String, Value> = FailureKind::ALL
        .iter()
        .map(|kind| (String::from(kind.name()), json!(tally.failures_of(*kind))))
        .collect();
    map.insert(String::from("failures"), Value::Object(failures));
    map.insert(String::from("statuses"), json!(tally.statuses));
    Value::Object(map)
}

pub(super) fn parse(value: &Value) -> Option<Tally> {
    let mut tally = Tally::default();
    for (name, counter) in counters(&mut tally) {
        *counter = match value.get(name) {
            // Older documents do not have this counter.
            None if NEWER.contains(&name) => 0,
            count => count?.as_u64()?,
        };
    }
    let failures = value.get("failures")?;
    for (kind, counter) in FailureKind::ALL.iter().zip(&mut tally.failures) {
        *counter = failures.get(kind.name())?.as_u64()?;
    }
    let statuses = value.get("statuses")?;
    for (index, counter) in tally.statuses.iter_mut().enumerate() {
        *counter = statuses.get(index)?.as_u64()?;
    }
    Some(tally)
}

/// Every counter except those by kind, with its name.
fn counters(tally: &mut Tally) -> Vec<(&'static str, &mut u64)> {
    // Destructured, so that a new counter can't be forgotten here.
    let Tally {
        started,
        answered,
        statuses_bad,
        surplus,
        connects,
        connected,
        open,
        open_max,
        ports_taken,
        bytes_sent,
        bytes_received,
        content_bytes,
        late_50us,
        late_1ms,
        waited_1ms,
        never_started,
        lost_us,
        hanging,
        failures: _,
        statuses: _,
    } = tally;
    vec![
        ("started", started),
        ("answered", answered),
        ("statuses_bad", statuses_bad),
        ("surplus", surplus),
        ("connects", connects),
        ("connected", connected),
        ("open", open),
        ("open_max", open_max),
        ("ports_taken", ports_taken),
        ("bytes_sent", bytes_sent),
        ("bytes_received", bytes_received),
        ("content_bytes", content_bytes),
        ("late_50us", late_50us),
        ("late_1ms", late_1ms),
        ("waited_1ms", waited_1ms),
        ("never_started", never_started),
        ("lost_us", lost_us),
        ("hanging", hanging),
    ]
}

/// Counters that documents of the same schema may lack.
const NEWER: [&str; 2] = ["lost_us", "hanging"];

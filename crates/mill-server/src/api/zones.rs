//! What was counted of servers and locations with a `status_zone`.

use super::error::ApiError;
use super::upstreams::responses;
use crate::zones::counts::ZoneFigures;
use crate::zones::{Zone, Zones};
use serde_json::{Value, json};

/// Of servers or of locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Servers,
    Locations,
}

impl Kind {
    /// All zones by their names.
    pub(super) fn all(self, zones: &Zones) -> Value {
        let named = self
            .list(zones)
            .into_iter()
            .map(|zone| (zone.name().display().into_owned(), self.document(zone)));
        Value::Object(named.collect())
    }

    /// The zone of this name.
    pub(super) fn one(self, name: &str, zones: &Zones) -> Result<Value, ApiError> {
        self.named(name, zones).map(|zone| self.document(zone))
    }

    /// Its statistics begin anew; what is under way stays.
    pub(super) fn reset(self, name: &str, zones: &Zones) -> Result<(), ApiError> {
        self.named(name, zones).map(Zone::reset)
    }

    fn list(self, zones: &Zones) -> Vec<&Zone> {
        match self {
            Self::Servers => zones.servers().collect(),
            Self::Locations => zones.locations().collect(),
        }
    }

    fn named<'z>(self, name: &str, zones: &'z Zones) -> Result<&'z Zone, ApiError> {
        let mut all = self.list(zones).into_iter();
        let found = all.find(|zone| zone.name().as_bytes() == name.as_bytes());
        found.ok_or(match self {
            Self::Servers => ApiError::SERVER_ZONE_NOT_FOUND,
            Self::Locations => ApiError::LOCATION_ZONE_NOT_FOUND,
        })
    }

    fn document(self, zone: &Zone) -> Value {
        let figures = zone.figures();
        let mut document = json!({
            "requests": figures.requests,
            "responses": answers(&figures),
            "discarded": figures.discarded,
            "received": figures.received_bytes,
            "sent": figures.sent_bytes,
        });
        if self == Self::Servers {
            document["processing"] = json!(figures.processing);
        }
        document
    }
}

fn answers(figures: &ZoneFigures) -> Value {
    let statuses = figures.responses.iter();
    responses(
        &figures.by_class(),
        statuses.map(|(status, count)| (*status, *count)),
    )
}

//! The name and the description of a counter, and the macro that makes a set from one table.

/// The description of one counter, for pages of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The field's name, for example `connections_accepted`.
    pub name: &'static str,
    /// Whether the figure only grows or follows a state.
    pub kind: Kind,
    /// The unit of the figure.
    pub unit: Unit,
    /// One or two sentences: when it is counted, and what to do about it.
    pub help: &'static str,
}

/// Whether a figure only grows or follows a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Counted since the worker started, never falls.
    Counter,
    /// How many there are at this moment.
    Gauge,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Octets as handed to the kernel or the stack.
    Bytes,
    /// Client connections.
    Connections,
    /// Occurrences of what the name says.
    Events,
    /// Requests whose head began to arrive.
    Requests,
    /// Final and interim responses.
    Responses,
    /// Lines of a log.
    Lines,
    /// Frames of a link.
    Frames,
    /// TCP segments.
    Segments,
    /// Buffers in memory.
    Buffers,
}

impl Unit {
    /// The unit's name, in the plural, as it is shown beside a figure.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Connections => "connections",
            Self::Events => "events",
            Self::Requests => "requests",
            Self::Responses => "responses",
            Self::Lines => "lines",
            Self::Frames => "frames",
            Self::Segments => "segments",
            Self::Buffers => "buffers",
        }
    }
}

/// Makes a set of counters: a plain struct of `u64` with its table of descriptions.
///
/// A field's documentation is its help text, so that the two cannot drift apart.
macro_rules! counters {
    (
        $(#[$set_attribute:meta])*
        $visibility:vis struct $set:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $kind:ident of $unit:ident,
            )+
        }
    ) => {
        $(#[$set_attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $visibility struct $set {
            $(
                $(#[doc = $help])+
                $visibility $field: u64,
            )+
        }

        impl $set {
            /// How many figures the set holds.
            $visibility const COUNT: usize = Self::DESCRIPTIONS.len();

            /// Name, kind, unit and help of every field, in the order of declaration.
            $visibility const DESCRIPTIONS: &'static [$crate::Description] = &[
                $(
                    $crate::Description {
                        name: stringify!($field),
                        kind: $crate::Kind::$kind,
                        unit: $crate::Unit::$unit,
                        help: concat!($($help),+).trim_ascii(),
                    },
                )+
            ];

            /// The figures in the order of [`Self::DESCRIPTIONS`].
            $visibility const fn values(&self) -> [u64; Self::COUNT] {
                [$(self.$field),+]
            }

            /// The set whose figures are `values`, in the order of [`Self::DESCRIPTIONS`].
            $visibility const fn from_values(values: [u64; Self::COUNT]) -> Self {
                let [$($field),+] = values;
                Self { $($field),+ }
            }

            /// Adds the figures of another worker. A sum too large for 64 bits stays at the largest
            /// figure, which at a billion a second takes five centuries.
            $visibility fn merge(&mut self, other: &Self) {
                $(self.$field = self.$field.saturating_add(other.$field);)+
            }
        }

        impl std::iter::Sum for $set {
            fn sum<I: Iterator<Item = Self>>(workers: I) -> Self {
                workers.fold(Self::default(), |mut sum, worker| {
                    sum.merge(&worker);
                    sum
                })
            }
        }
    };
}
pub(crate) use counters;

#[cfg(test)]
mod tests {
    use super::{Description, Kind, Unit};

    counters! {
        /// A set for the tests.
        struct Mill {
            /// Sacks ground
            /// since the wheel first turned.
            sacks: Counter of Events,
            /// Sacks in the loft.
            loft: Gauge of Lines,
        }
    }

    #[test]
    fn the_help_text_is_the_documentation_of_the_field() {
        assert_eq!(
            Mill::DESCRIPTIONS,
            [
                Description {
                    name: "sacks",
                    kind: Kind::Counter,
                    unit: Unit::Events,
                    help: "Sacks ground since the wheel first turned.",
                },
                Description {
                    name: "loft",
                    kind: Kind::Gauge,
                    unit: Unit::Lines,
                    help: "Sacks in the loft.",
                },
            ]
        );
    }

    #[test]
    fn merge_adds_every_figure_to_its_own() {
        let mut sum = Mill { sacks: 3, loft: 1 };
        sum.merge(&Mill { sacks: 4, loft: 10 });
        assert_eq!(sum, Mill { sacks: 7, loft: 11 });
    }

    #[test]
    fn a_sum_too_large_stays_at_the_largest_figure() {
        let mut sum = Mill {
            sacks: u64::MAX - 1,
            loft: 0,
        };
        sum.merge(&Mill { sacks: 1, loft: 0 });
        assert_eq!(sum.sacks, u64::MAX);
        sum.merge(&Mill { sacks: 1, loft: 0 });
        assert_eq!(sum.sacks, u64::MAX);
    }

    #[test]
    fn the_sum_of_no_workers_is_all_zero() {
        assert_eq!(std::iter::empty().sum::<Mill>(), Mill::default());
    }

    #[test]
    fn an_array_goes_there_and_back_in_order() {
        let mill = Mill { sacks: 5, loft: 2 };
        assert_eq!(mill.values(), [5, 2]);
        assert_eq!(Mill::from_values([5, 2]), mill);
    }
}

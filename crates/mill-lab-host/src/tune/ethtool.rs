//! What ethtool(8) prints, and what its settings are called on the command line.

/// A family of settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    Rings,
    Coalesce,
    Offloads,
}

impl Family {
    /// The option that shows, and the one that sets.
    pub(super) fn options(self) -> (&'static str, &'static str) {
        match self {
            Self::Rings => ("-g", "-G"),
            Self::Coalesce => ("-c", "-C"),
            Self::Offloads => ("-k", "-K"),
        }
    }

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Rings => "ring",
            Self::Coalesce => "coalesce",
            Self::Offloads => "offload",
        }
    }

    /// The current value of a setting, in the words that set it; none if the interface does not have it.
    pub(super) fn find(self, text: &str, name: &str) -> Option<String> {
        let value = match self {
            Self::Rings => {
                let (_, current) = text.split_once("Current hardware settings:")?;
                let label = name.replace('-', " ");
                line(current, &label)
            }
            Self::Coalesce => match name.strip_prefix("adaptive-") {
                Some(direction) => adaptive(text, direction),
                None => line(text, name),
            },
            Self::Offloads => line(text, long_name(name)),
        }?;
        let is_there = value != "n/a" && !value.is_empty();
        is_there.then(|| String::from(value))
    }

    /// Whether the driver keeps a setting as it is.
    pub(super) fn is_fixed(self, text: &str, name: &str) -> bool {
        let label = format!("{}:", long_name(name));
        let is_its = |line: &str| line.trim().starts_with(&label) && line.contains("[fixed]");
        self == Self::Offloads && text.lines().any(is_its)
    }
}

/// The first word after `label:`.
fn line<'a>(text: &'a str, label: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        let is_it = name.trim().eq_ignore_ascii_case(label);
        is_it.then(|| value.split_whitespace().next().unwrap_or_default())
    })
}

/// `Adaptive RX: off  TX: off`
fn adaptive<'a>(text: &'a str, direction: &str) -> Option<&'a str> {
    let line = text.lines().find(|line| line.starts_with("Adaptive "))?;
    let mut words = line.split_whitespace();
    let wanted = format!("{}:", direction.to_ascii_uppercase());
    words.find(|word| *word == wanted)?;
    words.next()
}

/// ethtool(8) takes short names and prints long ones.
fn long_name(name: &str) -> &str {
    const NAMES: [(&str, &str); 12] = [
        ("rx", "rx-checksumming"),
        ("tx", "tx-checksumming"),
        ("sg", "scatter-gather"),
        ("tso", "tcp-segmentation-offload"),
        ("ufo", "udp-fragmentation-offload"),
        ("gso", "generic-segmentation-offload"),
        ("gro", "generic-receive-offload"),
        ("lro", "large-receive-offload"),
        ("rxvlan", "rx-vlan-offload"),
        ("txvlan", "tx-vlan-offload"),
        ("ntuple", "ntuple-filters"),
        ("rxhash", "receive-hashing"),
    ];
    let long = NAMES.iter().find(|(short, _)| *short == name);
    long.map_or(name, |(_, long)| long)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RINGS: &str = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\n\
                         Current hardware settings:\nRX:\t\t256\nRX Mini:\tn/a\nTX:\t\t512\n";
    const COALESCE: &str = "Coalesce parameters for eth0:\nAdaptive RX: off  TX: on\nstats-block-usecs: n/a\n\nrx-usecs: 3\n";
    const OFFLOADS: &str = "Features for ms0:\nrx-checksumming: on\ntcp-segmentation-offload: on\n\
                            \ttx-tcp-segmentation: on\nlarge-receive-offload: off [fixed]\n";

    #[test]
    fn settings_are_found_by_the_words_that_set_them() {
        for (family, text, name, expected) in [
            (Family::Rings, RINGS, "rx", Some("256")),
            (Family::Rings, RINGS, "tx", Some("512")),
            (Family::Rings, RINGS, "rx-mini", None),
            (Family::Rings, "", "rx", None),
            (Family::Coalesce, COALESCE, "adaptive-rx", Some("off")),
            (Family::Coalesce, COALESCE, "adaptive-tx", Some("on")),
            (Family::Coalesce, COALESCE, "rx-usecs", Some("3")),
            (Family::Coalesce, COALESCE, "stats-block-usecs", None),
            (Family::Offloads, OFFLOADS, "tso", Some("on")),
            (
                Family::Offloads,
                OFFLOADS,
                "tx-tcp-segmentation",
                Some("on"),
            ),
            (Family::Offloads, OFFLOADS, "lro", Some("off")),
            (Family::Offloads, OFFLOADS, "gro", None),
        ] {
            let found = family.find(text, name);
            assert_eq!(found.as_deref(), expected, "{family:?} {name}");
        }
    }

    #[test]
    fn a_fixed_feature_is_known() {
        assert!(Family::Offloads.is_fixed(OFFLOADS, "lro"));
        assert!(!Family::Offloads.is_fixed(OFFLOADS, "tso"));
    }
}

//! The interface whose queues carry the frames: the one that is named, or the one below it if that is a virtual network.

use super::sentences::not_read;
use crate::network::{LinkQuery, LinkState, VlanOf};
use crate::vlan::Vlan;
use mill_sys::interface;

/// An interface with queues, and the network whose tag its frames have.
#[derive(Clone, Debug)]
pub(super) struct Carrier {
    pub(super) link: LinkState,
    pub(super) vlan: Option<Vlan>,
}

impl Carrier {
    /// `link` is the interface that is named, `wanted` the network that `vlan=` names.
    pub(super) fn of(link: &LinkState, wanted: Option<Vlan>) -> Result<Self, String> {
        let vlan = network(link, wanted)?;
        let link = match link.vlan {
            None => link.clone(),
            Some(VlanOf { parent, .. }) => below(parent)?,
        };
        Ok(Self { link, vlan })
    }

    /// What is in the way of tags at the interface, as a sentence.
    pub(super) fn notice(&self) -> Option<String> {
        let (name, id) = (&self.link.name, self.vlan?.id());
        let strips = interface::strips_vlan_tags(name).unwrap_or(false);
        strips.then(|| {
            format!(
                "af_xdp:{name}: it takes tags off before the stack sees them (rx-vlan-offload), unless it is virtual: frames of \
                 VLAN {id} then go to the kernel; \"ethtool -K {name} rxvlan off\" leaves them"
            )
        })
    }
}

fn network(link: &LinkState, wanted: Option<Vlan>) -> Result<Option<Vlan>, String> {
    let Some(VlanOf { id, .. }) = link.vlan else {
        return Ok(wanted);
    };
    let own = Vlan::new(id);
    match wanted {
        _ if own.is_none() => Err(format!(
            "it is VLAN {id}, whose frames only have a priority"
        )),
        Some(wanted) if own != Some(wanted) => {
            let wanted = wanted.id();
            Err(format!(
                "it is VLAN {id} itself: \"vlan={wanted}\" would be another one"
            ))
        }
        _ => Ok(own),
    }
}

fn below(parent: u32) -> Result<LinkState, String> {
    let of_parent = |what: String| format!("the interface below it: {what}");
    let name = interface::name(parent).map_err(|error| of_parent(error.to_string()))?;
    let query = LinkQuery::begin(&name).and_then(|query| query.link());
    query.map_err(|error| of_parent(not_read(&error)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mill_wire::ethernet::MacAddress;

    fn link(vlan: Option<u16>) -> LinkState {
        LinkState {
            name: String::from("eth0.10"),
            index: 3,
            mac: MacAddress([2, 0, 0, 0, 0, 1]),
            mtu: 1500,
            is_up: true,
            is_running: true,
            kind: None,
            receive_queues: 1,
            transmit_queues: 1,
            vlan: vlan.map(|id| VlanOf { parent: 2, id }),
        }
    }

    #[test]
    fn the_network_is_that_of_the_interface_or_of_the_option() {
        let check = |of_link, wanted: Option<u16>, expected: Result<Option<u16>, &str>| {
            let found = network(&link(of_link), wanted.and_then(Vlan::new));
            let found = found.map(|vlan| vlan.map(Vlan::id));
            match (found, expected) {
                (Err(found), Err(words)) => assert!(found.contains(words), "{found}"),
                (found, expected) => assert_eq!(found, expected.map_err(String::from)),
            }
        };
        check(None, None, Ok(None));
        check(None, Some(10), Ok(Some(10)));
        check(Some(10), None, Ok(Some(10)));
        check(Some(10), Some(10), Ok(Some(10)));
        check(Some(10), Some(11), Err("it is VLAN 10 itself"));
        check(Some(0), None, Err("only have a priority"));
    }
}

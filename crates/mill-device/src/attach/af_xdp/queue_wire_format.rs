//! The description of queues for the next binary or another process, which accompanies their descriptors.

use super::carrier::Carrier;
use super::shared_resources::SharedResources;
use super::{AfXdp, Socket};
use crate::attach::AttachError;
use crate::attach::inherited_device::vlan_terms;
use crate::handover::VERSION;
use crate::network::Network;
use crate::specification::settings::AfXdpSettings;
use crate::vlan::Vlan;
use mill_sys::xsk::{Copying, XskOptions};
use std::os::fd::OwnedFd;
use std::sync::Arc;

impl AfXdp<OwnedFd> {
    /// What the next binary has to know besides the descriptors.
    pub(in crate::attach) fn describe(&self) -> Option<String> {
        let socket = self.sockets.first()?;
        let XskOptions {
            frame_bytes,
            receive_frames,
            transmit_frames,
            copying,
            in_pieces,
            sharers: _,
        } = socket.options;
        let copying = match copying {
            Copying::AsDriverCan => "as-driver-can",
            Copying::Always => "always",
            Copying::Never => "never",
        };
        let (name, mtu, queues) = (
            &self.network.link.name,
            self.network.link.mtu,
            self.queues(),
        );
        let partition = match self.is_partition {
            true => self.worker.to_string(),
            false => String::from(ALONE),
        };
        let outlet = self.outlet.is_some();
        Some(format!(
            "{VERSION} af_xdp {name} mtu {mtu} partition {partition} queues {queues} bytes {frame_bytes} receive {receive_frames} \
             send {transmit_frames} copying {copying} pieces {in_pieces} outlet {outlet}{}",
            vlan_terms(self.vlan)
        ))
    }

    /// The queues, as text.
    fn queues(&self) -> String {
        let queues = self.sockets.iter().map(|socket| socket.queue.to_string());
        queues.collect::<Vec<_>>().join(",")
    }

    /// Whether these are all the queues that are wanted.
    pub(in crate::attach) fn check(
        attachments: &[&Self],
        interface: &str,
        settings: &AfXdpSettings,
    ) -> Result<(), AttachError> {
        let mut there: Vec<u32> = attachments
            .iter()
            .flat_map(|attachment| attachment.sockets.iter().map(|socket| socket.queue))
            .collect();
        there.sort_unstable();
        let Some(first) = attachments.first() else {
            return Err(AttachError(format!(
                "af_xdp:{interface}: there is no queue"
            )));
        };
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let carrier = Carrier::of(&first.network.link, first.vlan).map_err(refused)?;
        let mut wanted = super::sockets::queues_of(&carrier.link, settings);
        wanted.sort_unstable();
        if wanted == there {
            return Ok(());
        }
        let there: Vec<String> = there.iter().map(u32::to_string).collect();
        Err(AttachError(format!(
            "af_xdp:{interface}: the device can't be changed together with the binary: the old one has \
             af_xdp:{interface},queue={}",
            there.join(",")
        )))
    }

    /// Parses the description that the previous binary, or the keeper of a device, has sent.
    pub(in crate::attach) fn inherit(
        (interface, vlan): (&str, Option<Vlan>),
        text: &str,
        descriptors: &mut impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let unknown = || {
            refused(format!(
                "the old binary has a device that this one does not know ({text})"
            ))
        };
        let (text, their_vlan) = match text.split_once(" vlan ") {
            Some((text, id)) => (text, id.parse().ok().and_then(Vlan::new)),
            None => (text, None),
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [
            version,
            "af_xdp",
            name,
            "mtu",
            mtu,
            "partition",
            partition,
            "queues",
            queues,
            "bytes",
            bytes,
            "receive",
            receive,
            "send",
            send,
            "copying",
            copying,
            "pieces",
            pieces,
            "outlet",
            outlet,
        ] = words.as_slice()
        else {
            return Err(unknown());
        };
        if *version != VERSION.to_string() {
            return Err(refused(format!(
                "the old binary speaks of it in version {version}, and this one in {VERSION}: stop it and start the new one"
            )));
        }
        let mut network = Network::of(interface).map_err(|error| refused(error.to_string()))?;
        if *name != interface {
            return Err(refused(format!(
                "the device can't be changed together with the binary: the old one has af_xdp:{name},queue={queues}"
            )));
        }
        let carrier = Carrier::of(&network.link, vlan).map_err(refused)?;
        if carrier.vlan != their_vlan {
            let [theirs, ours] = [their_vlan, carrier.vlan].map(|vlan| match vlan {
                Some(vlan) => format!("VLAN {}", vlan.id()),
                None => String::from("no VLAN"),
            });
            return Err(refused(format!(
                "the device can't be changed together with the binary: the old one has {theirs}, and this one {ours}"
            )));
        }
        let number = |text: &str| text.parse().map_err(|_| unknown());
        let options = XskOptions {
            frame_bytes: number(bytes)?,
            receive_frames: number(receive)?,
            transmit_frames: number(send)?,
            copying: match *copying {
                "as-driver-can" => Copying::AsDriverCan,
                "always" => Copying::Always,
                "never" => Copying::Never,
                _ => return Err(unknown()),
            },
            in_pieces: pieces.parse().map_err(|_| unknown())?,
            sharers: 1,
        };
        network.link.mtu = mtu.parse().map_err(|_| unknown())?;
        let mut next = || descriptors.next().ok_or_else(unknown);
        let mut sockets = Vec::new();
        for queue in queues.split(',') {
            sockets.push(Socket {
                descriptor: next()?,
                memory: next()?,
                queue: number(queue)?,
                place: 0,
                options,
            });
        }
        Ok(Self {
            sockets,
            table: [next()?, next()?],
            outlet: match *outlet {
                "true" => Some(next()?),
                _ => None,
            },
            shared: Arc::new(SharedResources::new(1, 1)),
            opened: Arc::default(),
            worker: match *partition {
                ALONE => 0,
                some => number(some)?,
            },
            is_partition: *partition != ALONE,
            network: Box::new(network),
            vlan: their_vlan,
        })
    }
}

/// In place of a partition's number: there is only one.
const ALONE: &str = "-";

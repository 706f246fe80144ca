//! The description of a queue for the next binary, which accompanies its descriptors.

use super::shared_resources::SharedResources;
use super::{AfXdp, Socket};
use crate::attach::AttachError;
use crate::handover::VERSION;
use crate::network::Network;
use crate::specification::settings::AfXdpSettings;
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
        let (name, mtu, queue) = (&self.network.link.name, self.network.link.mtu, socket.queue);
        Some(format!(
            "{VERSION} af_xdp {name} mtu {mtu} queue {queue} bytes {frame_bytes} receive {receive_frames} send {transmit_frames} \
             copying {copying} pieces {in_pieces}"
        ))
    }

    /// Parses the description that the previous binary has sent.
    pub(in crate::attach) fn inherit(
        interface: &str,
        settings: &AfXdpSettings,
        text: &str,
        descriptors: impl Iterator<Item = OwnedFd>,
    ) -> Result<Self, AttachError> {
        let refused = |what: String| AttachError(format!("af_xdp:{interface}: {what}"));
        let unknown = || {
            refused(format!(
                "the old binary has a device that this one does not know ({text})"
            ))
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let [
            version,
            "af_xdp",
            name,
            "mtu",
            mtu,
            "queue",
            queue,
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
        let wanted = super::sockets::queues_of(&network.link, settings);
        if *name != interface || wanted.iter().map(u32::to_string).ne([*queue]) {
            return Err(refused(format!(
                "the device can't be changed together with the binary: the old one has af_xdp:{name},queue={queue}"
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
        let descriptors: Vec<OwnedFd> = descriptors.collect();
        let [socket, memory, served, counters] = descriptors.try_into().map_err(|_| unknown())?;
        Ok(Self {
            sockets: vec![Socket {
                descriptor: socket,
                memory,
                queue: wanted.first().copied().unwrap_or_default(),
                place: 0,
                options,
            }],
            table: [served, counters],
            shared: Arc::new(SharedResources::new(1, 1)),
            doorbell: None,
            worker: 0,
            network,
        })
    }
}

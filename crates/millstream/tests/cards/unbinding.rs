//! Cards that lose their driver while a server has them.

use crate::card::{ADDRESS, Card, IGB, VIRTIO_NET, begin, ip};
use crate::client::Client;
use crate::namespace::get;
use crate::server::wait_for;
use crate::serving::serve;
use std::fs;
use std::net::{SocketAddr, TcpListener};

fn check(card: Card) {
    serve(card, |serving| {
        let mut client = serving.connect();
        assert_eq!(client.get("/").unwrap().content, b"hello\n");
        let device = &serving.wire.device;
        let driver = fs::canonicalize(device.join("driver")).unwrap();
        let number = device.file_name().unwrap().to_str().unwrap();
        fs::write(driver.join("unbind"), number).unwrap();
        wait_for(|| serving.has_said("the device \"mill0\" was deleted"));
        // The server goes on where it can.
        assert_eq!(get("http://127.0.0.1/").as_deref(), Some("hello\n"));
        fs::write(driver.join("bind"), number).unwrap();
        serving.wire.at_first(|| {
            let name = card.name();
            begin(&name, ADDRESS);
            // The kernel has the card as if nothing had been.
            let kernels = TcpListener::bind((ADDRESS, 8080)).unwrap();
            let address: SocketAddr = kernels.local_addr().unwrap();
            serving
                .wire
                .at_client(|| wait_for(|| Client::connect(address).is_ok()));
        });
        serving
            .wire
            .at_first(|| ip(&format!("address flush dev {}", card.name())));
    });
}

#[test]
fn virtio_net_without_its_driver_is_reported_and_works_afterwards() {
    check(VIRTIO_NET);
}

#[test]
fn igb_without_its_driver_is_reported_and_works_afterwards() {
    check(IGB);
}

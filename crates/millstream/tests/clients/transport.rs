//! What h2 reads from and writes to: a socket, in clear or under rustls.

use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(crate) struct Transport {
    pub(crate) socket: Rc<TcpStream>,
    tls: Option<ClientConnection>,
}

impl Transport {
    /// Connects; under TLS to `a.example`, as `authority` certifies it, with HTTP/2 as the only protocol.
    pub(crate) fn connect(address: SocketAddr, authority: Option<&Path>) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_nonblocking(true).unwrap();
        let tls = authority.map(|path| {
            let mut roots = RootCertStore::empty();
            roots
                .add(CertificateDer::from_pem_file(path).unwrap())
                .unwrap();
            let mut config = ClientConfig::builder()
                .with_root_certificates(roots)
                .with_no_client_auth();
            config.alpn_protocols = vec![b"h2".to_vec()];
            let name = ServerName::try_from("a.example").unwrap();
            ClientConnection::new(Arc::new(config), name).unwrap()
        });
        Self {
            socket: Rc::new(socket),
            tls,
        }
    }

    /// Sends what rustls has sealed.
    fn send_sealed(&mut self) -> Poll<io::Result<()>> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                if let Poll::Ready(Err(error)) = polled(tls.write_tls(&mut &*self.socket)) {
                    return Poll::Ready(Err(error));
                }
                if tls.wants_write() {
                    return Poll::Pending;
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Pending where a socket would block. The executor polls again in time.
fn polled<T>(result: io::Result<T>) -> Poll<io::Result<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
        result => Poll::Ready(result),
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let room = buffer.initialize_unfilled();
        let len = loop {
            let Some(tls) = &mut this.tls else {
                break polled((&*this.socket).read(room));
            };
            match tls.reader().read(room) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                result => break Poll::Ready(result),
            }
            if let Poll::Ready(Err(error)) = this.send_sealed() {
                break Poll::Ready(Err(error));
            }
            let tls = this.tls.as_mut().expect("it was there");
            match polled(tls.read_tls(&mut &*this.socket)) {
                Poll::Ready(Ok(_)) => {}
                other => break other,
            }
            if let Err(error) = tls.process_new_packets() {
                break Poll::Ready(Err(io::Error::other(error)));
            }
        };
        len.map_ok(|len| buffer.advance(len))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.tls.is_none() {
            return polled((&*this.socket).write(bytes));
        }
        // Sealed bytes that the socket does not take hold the next ones back.
        match this.send_sealed() {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
            Poll::Pending => return Poll::Pending,
        }
        let tls = this.tls.as_mut().expect("it was there");
        let written = tls.writer().write(bytes)?;
        if let Poll::Ready(Err(error)) = this.send_sealed() {
            return Poll::Ready(Err(error));
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().send_sealed()
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Some(tls) = &mut this.tls {
            tls.send_close_notify();
        }
        match this.send_sealed() {
            // The other end may have closed it.
            Poll::Ready(_) => {
                let _ = this.socket.shutdown(Shutdown::Write);
                Poll::Ready(Ok(()))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

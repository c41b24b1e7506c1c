//! Other sides that are no servers: they say nothing, or one thing.

use std::net::{Ipv4Addr, SocketAddr, TcpStream as Connected};
use std::sync::Arc;

use lockable_tests::Tls;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What such a side says.
#[derive(Clone, Copy)]
pub(super) enum Reply {
    None,
    /// What a server answers to the commands of a login without a password.
    Login,
    /// This error, before it closes the connection without having read anything.
    Closing(&'static str),
}

/// It listens until this is dropped.
pub(super) struct Peer {
    address: SocketAddr,
    serving: Option<AbortHandle>,
    /// What fills its queue.
    _queued: Option<(TcpListener, Connected)>,
}

impl Peer {
    /// On a port of this machine; with certificates it speaks TLS.
    pub(super) async fn start(reply: Reply, tls: Option<&Tls>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = tls.map(acceptor);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    match acceptor {
                        None => serve(stream, reply).await,
                        Some(acceptor) => {
                            if let Ok(stream) = acceptor.accept(stream).await {
                                serve(stream, reply).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, serving: Some(serving.abort_handle()), _queued: None }
    }

    /// Accepts no connection: the system drops all that asks for one.
    pub(super) fn swallowing() -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(0).unwrap();
        let address = listener.local_addr().unwrap();
        let queued = Some((listener, Connected::connect(address).unwrap()));
        Self { address, serving: None, _queued: queued }
    }

    /// As a URL has it.
    pub(super) fn address(&self) -> String {
        self.address.to_string()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some(serving) = &self.serving {
            serving.abort();
        }
    }
}

/// The same on a socket in a folder, for as long as the runtime of the test lasts.
pub(super) fn on_socket(reply: Reply) -> TempDir {
    let folder = TempDir::with_prefix("lockable-peer-").unwrap();
    let listener = UnixListener::bind(folder.path().join("socket")).unwrap();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(stream, reply));
        }
    });
    folder
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin, reply: Reply) {
    match reply {
        Reply::None => {}
        Reply::Login => stream.write_all(b"+OK\r\n+OK\r\n").await.unwrap(),
        Reply::Closing(error) => {
            let line = format!("-{error}\r\n");
            // One byte of the login is here by then, and the rest is lost.
            stream.read_u8().await.unwrap();
            stream.write_all(line.as_bytes()).await.unwrap();
            return stream.flush().await.unwrap();
        }
    }
    // Whatever arrives has no answer.
    drop(copy(&mut stream, &mut sink()).await);
}

fn acceptor(tls: &Tls) -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(tls.certificate_file()).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls.key_file()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = config.with_single_cert(chain.map(Result::unwrap).collect(), key).unwrap();
    TlsAcceptor::from(Arc::new(config))
}

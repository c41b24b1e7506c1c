//! A `redis-server` with TLS: the harness of the other tests has ring.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;

/// It ends with this value.
pub(crate) struct Server {
    child: Child,
    port: u16,
    /// In PEM form.
    pub(crate) authority: String,
    _directory: TempDir,
}

impl Server {
    pub(crate) fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let authority = certify(&directory);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("redis-server");
        command.current_dir(&directory).stdout(Stdio::null());
        command.args(["--port", "0", "--tls-port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--tls-ca-cert-file", "ca.crt", "--tls-cert-file", "server.crt"]);
        command.args(["--tls-key-file", "server.key", "--tls-auth-clients", "no", "--save", ""]);
        let server =
            Self { child: command.spawn().unwrap(), port, authority, _directory: directory };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the server does not listen");
            std::thread::yield_now();
        }
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("rediss://localhost:{}", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Writes the files that the server reads, and returns the certificate of their authority.
fn certify(directory: &TempDir) -> String {
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let files = [
        ("ca.crt", authority.pem()),
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ];
    for (name, content) in files {
        fs::write(directory.path().join(name), content).unwrap();
    }
    authority.pem()
}

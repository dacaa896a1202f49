//! A server over TLS that answers every request alike, as `shop.example`.

use std::io::{Read, Write};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::support::RawServer;

/// Its certificate, which is its own root.
pub const CERTIFICATE: &str = include_str!("../data/shop.example.cert.pem");
/// One of the same key that was good until 2021.
pub const EXPIRED: &str = include_str!("../data/shop.example.expired.cert.pem");
const KEY: &str = include_str!("../data/shop.example.key.pem");

/// What TLS needs of a server that shows this certificate and speaks these protocols.
pub fn config(certificate: &str, protocols: &[&str]) -> Arc<rustls::ServerConfig> {
    paced::internals::fetch::install_tls();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).expect("a key");
    let config = rustls::ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate], key).expect("a pair");
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    Arc::new(config)
}

/// Answers every request with these bytes and closes.
pub fn answering(certificate: &str, bytes: Vec<u8>) -> RawServer {
    serving(certificate, |_| (), move |_| bytes.clone())
}

/// Answers every request by its head and closes; `met` is called before the handshake with the connection's number, from 1.
pub fn serving(
    certificate: &str,
    met: impl Fn(usize) + Send + Sync + 'static,
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
) -> RawServer {
    keeping(certificate, met, move |head| (answer(head), true))
}

/// The same, where the answer says whether the connection is closed after it.
pub fn keeping(
    certificate: &str,
    met: impl Fn(usize) + Send + Sync + 'static,
    answer: impl Fn(&str) -> (Vec<u8>, bool) + Send + Sync + 'static,
) -> RawServer {
    let config = config(certificate, &["http/1.1"]);
    RawServer::start(move |stream, number| {
        met(number);
        let session = rustls::ServerConnection::new(Arc::clone(&config)).expect("a session");
        let mut stream = rustls::StreamOwned::new(session, stream);
        let mut closes = false;
        while !closes {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                let Ok(1) = stream.read(&mut byte) else { return };
                head.push(byte[0]);
            }
            let (bytes, is_last) = answer(&String::from_utf8_lossy(&head));
            closes = stream.write_all(&bytes).and_then(|()| stream.flush()).is_err() || is_last;
        }
        stream.conn.send_close_notify();
        let _ = stream.flush();
    })
}

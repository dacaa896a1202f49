//! A bad server: it answers bytes, whatever HTTP thinks of them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

/// A listener whose connections are met by a function, each on a thread of its own. Dropped, it accepts no more.
pub struct RawServer {
    addr: SocketAddr,
    stopped: Arc<AtomicBool>,
    connections: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl RawServer {
    /// Calls `meet` with each connection and its number, from 1.
    pub fn start(meet: impl Fn(TcpStream, usize) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port of 127.0.0.1");
        let addr = listener.local_addr().expect("it is bound");
        let stopped = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicUsize::new(0));
        let (stop, count, meet) = (Arc::clone(&stopped), Arc::clone(&connections), Arc::new(meet));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let number = count.fetch_add(1, Ordering::SeqCst) + 1;
                let meet = Arc::clone(&meet);
                std::thread::spawn(move || meet(stream, number));
            }
        });
        Self { addr, stopped, connections, thread: Some(thread) }
    }

    /// Reads the head of a request, writes these bytes and closes the connection.
    pub fn answering(bytes: impl Into<Vec<u8>>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut stream, _| {
            Self::read_head(&mut stream);
            let _ = stream.write_all(&bytes);
        })
    }

    /// Reads up to the empty line that ends a request's head, or the end of the connection.
    pub fn read_head(stream: &mut TcpStream) -> String {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
            head.push(byte[0]);
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The absolute URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread from its accept.
        let woken = TcpStream::connect(self.addr).is_ok();
        if let Some(thread) = self.thread.take().filter(|_| woken) {
            let _ = thread.join();
        }
    }
}

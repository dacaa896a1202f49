//! A door before a server: while it is shut, the server is away.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// Listens on a port of its own and passes everything on.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    addr: SocketAddr,
    open: AtomicBool,
    turned_away: AtomicUsize,
    inside: Mutex<Vec<TcpStream>>,
}

impl Gate {
    /// An open gate before a server.
    pub fn before(server: SocketAddr) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let addr = listener.local_addr().expect("an address");
        let (open, turned_away) = (AtomicBool::new(true), AtomicUsize::new(0));
        let gate = Self(Arc::new(Inner { addr, open, turned_away, inside: Mutex::default() }));
        let door = gate.clone();
        thread::spawn(move || listener.incoming().flatten().for_each(|visitor| door.meet(&visitor, server)));
        gate
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.0.addr)
    }

    /// From now on nobody gets in, and those inside are thrown out.
    pub fn shut(&self) {
        self.0.open.store(false, Ordering::SeqCst);
        for stream in self.0.inside.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn open(&self) {
        self.0.open.store(true, Ordering::SeqCst);
    }

    /// How many were not let in.
    pub fn turned_away(&self) -> usize {
        self.0.turned_away.load(Ordering::SeqCst)
    }

    fn meet(&self, visitor: &TcpStream, server: SocketAddr) {
        if !self.0.open.load(Ordering::SeqCst) {
            self.0.turned_away.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let host = TcpStream::connect(server).expect("the server");
        let mut inside = self.0.inside.lock().expect("no panic");
        for (from, to) in [(visitor, &host), (&host, visitor)] {
            let (mut from, mut to) = (from.try_clone().expect("a stream"), to.try_clone().expect("a stream"));
            inside.push(from.try_clone().expect("a stream"));
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    }
}

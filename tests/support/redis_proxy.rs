//! A road to a server that can be closed at any moment: connections through it are forwarded, cut, robbed of an answer, or
//! of a request, which arrives later.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Forwards to a server on loopback; ends with the test.
pub struct RedisProxy {
    addr: SocketAddr,
    port: u16,
    road: Arc<Road>,
}

#[derive(Default)]
struct Road {
    /// The text whose next request is forwarded and then left without an answer.
    rob: Mutex<Option<Vec<u8>>>,
    robbed: AtomicU64,
    /// The text whose next request is held back.
    hold: Mutex<Option<Vec<u8>>>,
    held: Mutex<Vec<Vec<u8>>>,
    closed: AtomicBool,
    stalled: AtomicBool,
    /// How many ms each piece takes on its way.
    slow: AtomicU64,
    ends: Mutex<Vec<TcpStream>>,
}

impl RedisProxy {
    /// To the server on that port.
    pub fn to(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let addr = listener.local_addr().expect("it is bound");
        let road = Arc::new(Road::default());
        let shared = Arc::clone(&road);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                if !shared.closed.load(Ordering::SeqCst) {
                    let _ = forward(client, port, &shared);
                }
            }
        });
        Self { addr, port, road }
    }

    /// What a frontier in that database is called through here.
    pub fn url(&self, db: u32) -> String {
        format!("redis://{}/{db}", self.addr)
    }

    /// The next request that holds this text reaches the server and is done; its connection ends before the answer.
    pub fn lose_answer_to(&self, text: &str) {
        *lock(&self.road.rob) = Some(text.as_bytes().to_vec());
    }

    /// How many answers were lost so far.
    pub fn lost(&self) -> u64 {
        self.road.robbed.load(Ordering::SeqCst)
    }

    /// The next request that holds this text doesn't reach the server until [`Self::let_through`]; its connection ends.
    pub fn hold_back(&self, text: &str) {
        *lock(&self.road.hold) = Some(text.as_bytes().to_vec());
    }

    /// How many requests are held back.
    pub fn held(&self) -> usize {
        lock(&self.road.held).len()
    }

    /// What was held back reaches the server, in its database 0; what was answered, each a line.
    pub fn let_through(&self) -> Vec<String> {
        let held = std::mem::take(&mut *lock(&self.road.held));
        held.iter().map(|bytes| answer_to(bytes, self.port).expect("a server that answers")).collect()
    }

    /// Cuts all connections and takes no new ones.
    pub fn close(&self) {
        self.road.closed.store(true, Ordering::SeqCst);
        self.cut();
    }

    /// Takes connections again.
    pub fn open(&self) {
        self.road.closed.store(false, Ordering::SeqCst);
    }

    /// Nothing arrives on either side from now on, as if all packets were dropped; connections stay.
    pub fn stall(&self) {
        self.road.stalled.store(true, Ordering::SeqCst);
    }

    /// From now on each piece takes so long on its way, there and back.
    pub fn slow(&self, way: Duration) {
        self.road.slow.store(u64::try_from(way.as_millis()).unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// What was sent meanwhile arrives, also of connections that their clients have given up.
    pub fn flow(&self) {
        self.road.stalled.store(false, Ordering::SeqCst);
    }

    /// Cuts all connections; new ones are welcome.
    pub fn cut(&self) {
        for stream in lock(&self.road.ends).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for RedisProxy {
    fn drop(&mut self) {
        self.close();
        // The listener's thread sees the end when it next looks.
        let _ = TcpStream::connect(self.addr);
    }
}

fn forward(client: TcpStream, port: u16, road: &Arc<Road>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", port))?;
    lock(&road.ends).extend([client.try_clone()?, server.try_clone()?]);
    let (up, down) = ((client.try_clone()?, server.try_clone()?), (server, client));
    let robbed = Arc::new(AtomicBool::new(false));
    let (there, back, silent) = (Arc::clone(road), Arc::clone(road), Arc::clone(&robbed));
    std::thread::spawn(move || pump(up, |bytes| there.passes(bytes, &robbed)));
    // The answer is read, so that the request was done for certain, and goes nowhere.
    std::thread::spawn(move || {
        pump(down, |_| {
            back.wait_for_flow();
            !silent.load(Ordering::SeqCst)
        });
    });
    Ok(())
}

impl Road {
    fn wait_for_flow(&self) {
        std::thread::sleep(Duration::from_millis(self.slow.load(Ordering::SeqCst)));
        while self.stalled.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a request passes, and not only to be held back; the one to be robbed is remembered.
    fn passes(&self, bytes: &[u8], robbed: &AtomicBool) -> bool {
        self.wait_for_flow();
        if take_if_in(&self.rob, bytes) {
            robbed.store(true, Ordering::SeqCst);
            self.robbed.fetch_add(1, Ordering::SeqCst);
        }
        let is_held = take_if_in(&self.hold, bytes);
        if is_held {
            lock(&self.held).push(bytes.to_vec());
        }
        !is_held
    }
}

/// Whether a text is looked for and found; it is then looked for no more.
fn take_if_in(text: &Mutex<Option<Vec<u8>>>, bytes: &[u8]) -> bool {
    let is_in = |text: &mut Vec<u8>| bytes.windows(text.len()).any(|window| window == text.as_slice());
    lock(text).take_if(is_in).is_some()
}

/// The first line of what a server answers.
fn answer_to(bytes: &[u8], port: u16) -> std::io::Result<String> {
    let mut server = TcpStream::connect(("127.0.0.1", port))?;
    server.write_all(bytes)?;
    let mut line = String::new();
    BufReader::new(server).read_line(&mut line)?;
    Ok(line.trim_end().to_owned())
}

/// Copies until either end is gone or `pass` says no; then both ends are.
fn pump((mut from, mut to): (TcpStream, TcpStream), mut pass: impl FnMut(&[u8]) -> bool) {
    let mut piece = vec![0; 64 * 1024];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        if !pass(&piece[..length]) || to.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! A real `redis-server` on a free port of loopback, with a folder of its own; it ends with the test, however that ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::process::{Pid, Signal, kill_process};

use super::redis_cli::{RedisCli, Said};
use super::redis_steps::HeardSteps;
use super::{TempData, eventually, moved_clock, skip};

/// Tells the program's process id, and kills it when nobody holds the standard input any more: not even a test that was
/// killed leaves a server behind. The folder named first, if any, then goes as well.
const WATCHED: &str = r#"
folder=$1; shift
"$@" </dev/null >/dev/null & echo $!
cat >/dev/null
kill -9 $!; wait
[ -z "$folder" ] || rm -rf "$folder""#;

/// A server with nothing special; none, said loudly, where Redis isn't installed.
pub fn redis_or_skip() -> Option<RedisServer> {
    RedisServer::builder().start()
}

/// What a server is started with.
#[must_use]
pub struct RedisServerBuilder {
    settings: Vec<(String, String)>,
    password: Option<String>,
    user: Option<String>,
    tls: bool,
    /// How many ms its wall clock, which can be moved, is ahead.
    clock: Option<i64>,
    counted: bool,
    ends_with_process: bool,
    dump: Option<PathBuf>,
}

impl RedisServerBuilder {
    /// With a line of `redis.conf`. A later one wins.
    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.settings.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With what a dump holds (`SAVE`).
    pub fn dump(mut self, file: &Path) -> Self {
        self.dump = Some(file.to_owned());
        self
    }

    /// Only for those who know this password.
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self.set("requirepass", password)
    }

    /// Only for this user, who may do everything.
    pub fn user(self, name: &str, password: &str) -> Self {
        self.set("user", &format!("{name} on >{password} ~* &* +@all"))
            .set("user", "default off")
            .known_as(name, password)
    }

    /// Its settings have this user: commands and frontiers come under that name.
    pub fn known_as(mut self, name: &str, password: &str) -> Self {
        self.user = Some(name.to_owned());
        self.password = Some(password.to_owned());
        self
    }

    /// Every write is on disk before it is answered.
    pub fn append_only(self) -> Self {
        self.set("appendonly", "yes").set("appendfsync", "always")
    }

    /// A copy of another server, which can only be read.
    pub fn replica_of(self, other: &RedisServer) -> Self {
        self.set("replicaof", &format!("127.0.0.1 {}", other.port))
    }

    /// Over TLS alone, with the certificate of `tests/data/localhost.cert.pem`.
    pub fn tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// With a wall clock that [`RedisServer::shift_clock`] moves.
    pub fn movable_clock(self) -> Self {
        self.clock_ahead(0)
    }

    /// The same, with one that is so many ms ahead from the start.
    pub fn clock_ahead(mut self, ms: i64) -> Self {
        self.clock = Some(ms);
        self
    }

    /// Under valgrind, which counts its instructions, and makes it some fifty times as slow.
    pub fn counted(mut self) -> Self {
        self.counted = true;
        self
    }

    /// It is never dropped: its folder goes with the process.
    fn ends_with_process(mut self) -> Self {
        self.ends_with_process = true;
        self
    }

    /// Starts it and waits until it answers. None, said loudly, where Redis isn't installed.
    pub fn start(self) -> Option<RedisServer> {
        if Command::new("redis-server").arg("--version").output().is_err() {
            skip("no `redis-server`; install the package of that name");
            return None;
        }
        if self.counted && Command::new("callgrind_control").arg("--version").output().is_err() {
            skip("no `callgrind_control`; install the package `valgrind`");
            return None;
        }
        let mut server = RedisServer {
            port: free_port(),
            folder: TempData::new(),
            settings: self.settings,
            user: self.user,
            password: self.password,
            tls: self.tls,
            clock: self.clock.map(|_| moved_clock::library()),
            counted: self.counted,
            ends_with_process: self.ends_with_process,
            process: None,
        };
        if let Some(ahead) = self.clock {
            server.shift_clock(ahead);
        }
        if let Some(dump) = &self.dump {
            fs::copy(dump, server.folder.file("dump.rdb")).expect("a dump");
        }
        // Another process may have been quicker to take the port.
        while !server.launch() {
            server.port = free_port();
        }
        Some(server)
    }
}

/// A running server.
pub struct RedisServer {
    port: u16,
    folder: TempData,
    settings: Vec<(String, String)>,
    user: Option<String>,
    password: Option<String>,
    tls: bool,
    clock: Option<PathBuf>,
    counted: bool,
    ends_with_process: bool,
    process: Option<(Child, Pid)>,
}

impl RedisServer {
    /// To start one with wishes.
    pub fn builder() -> RedisServerBuilder {
        RedisServerBuilder {
            settings: Vec::new(),
            password: None,
            user: None,
            tls: false,
            clock: None,
            counted: false,
            ends_with_process: false,
            dump: None,
        }
    }

    /// Its port on loopback; with TLS where it was asked for.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Its socket file.
    pub fn socket(&self) -> PathBuf {
        self.folder.file("redis.sock")
    }

    /// What a frontier in its database of that number is called.
    pub fn url(&self, db: u32) -> String {
        let scheme = if self.tls { "rediss" } else { "redis" };
        let host = if self.tls { "localhost" } else { "127.0.0.1" };
        let who = match &self.password {
            Some(password) => format!("{}:{password}@", self.user.as_deref().unwrap_or("")),
            None => String::new(),
        };
        format!("{scheme}://{who}{host}:{}/{db}", self.port)
    }

    /// What database 0 is called by its socket file.
    pub fn unix_url(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// A connection for commands, in database 0, through the socket file: it is there also where TCP wants TLS.
    pub fn connect(&self) -> RedisCli {
        self.try_connect().expect("a server that answers")
    }

    fn try_connect(&self) -> Option<RedisCli> {
        let mut cli = RedisCli::unix(&self.socket()).ok()?;
        if let Some(password) = &self.password {
            let user = self.user.as_deref().unwrap_or("default");
            cli.say(&["AUTH", user, password]).ok()?;
        }
        (cli.say(&["PING"]).ok()? == Said::Text("PONG".to_owned())).then_some(cli)
    }

    /// Hears what steps clients ask for from now on.
    pub fn heard_steps(&self) -> HeardSteps {
        HeardSteps::by(self.connect())
    }

    /// Says one command in a database, as an operator does; what was answered, as text. A refusal fails the test.
    #[track_caller]
    pub fn cli_in(&self, db: u32, words: &[&str]) -> String {
        let mut cli = self.connect();
        for words in [&["SELECT", &db.to_string()], words] {
            match cli.say(words).expect("an answer") {
                Said::Error(why) => panic!("{words:?}: {why}"),
                said if words[0] != "SELECT" => return said.text(),
                _ => {}
            }
        }
        unreachable!("the last command returned")
    }

    /// The same in database 0.
    #[track_caller]
    pub fn cli(&self, words: &[&str]) -> String {
        self.cli_in(0, words)
    }

    /// A field of `INFO`.
    #[track_caller]
    pub fn info(&self, field: &str) -> Option<String> {
        let info = self.cli(&["INFO", "everything"]);
        info.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
    }

    /// How often each command was called since it started or `CONFIG RESETSTAT`, those inside scripts included.
    pub fn calls(&self) -> BTreeMap<String, u64> {
        let stats = self.cli(&["INFO", "commandstats"]);
        let calls = stats.lines().filter_map(|line| {
            let (name, fields) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), fields.split(',').next()?.parse().ok()?))
        });
        calls.collect()
    }

    /// How many batches of steps it was asked to run.
    pub fn batches(&self) -> u64 {
        self.calls().get("fcall").copied().unwrap_or(0)
    }

    /// Counts its instructions from now on: it is several times as fast before.
    pub fn count_instructions(&self) {
        self.callgrind("--instr=on");
    }

    fn callgrind(&self, what: &str) {
        assert!(self.counted, "asked for with `counted`");
        let (_, pid) = self.process.as_ref().expect("it runs");
        let pid = pid.as_raw_nonzero().to_string();
        let done = Command::new("callgrind_control").args([what, &pid]).output().expect("valgrind's tools");
        assert!(done.status.success(), "{done:?}");
    }

    /// Instructions that it took since it was last asked, or since they are counted.
    pub fn instructions(&self) -> u64 {
        self.callgrind("--dump");
        eventually("the count is written", || {
            let folder = fs::read_dir(self.folder()).expect("its folder");
            let counts = folder.filter_map(|entry| Some(entry.ok()?.path())).filter_map(|path| {
                let text =
                    fs::read_to_string(&path).ok().filter(|_| path.to_string_lossy().contains("/counts."))?;
                let count = text.lines().find_map(|line| line.strip_prefix("totals: ")?.parse().ok())?;
                Some((path, count))
            });
            let (path, count) =
                counts.max_by_key(|(path, _)| path.metadata().and_then(|file| file.modified()).ok())?;
            fs::remove_file(path).expect("it is ours");
            Some(count)
        })
    }

    /// Ends it as a power cut does.
    pub fn kill9(&mut self) {
        if let Some((mut process, _)) = self.process.take() {
            drop(process.stdin.take());
            let _ = process.wait();
            let _ = fs::remove_file(self.socket());
        }
    }

    /// Starts it again on its port and folder, after its end if it still runs.
    pub fn restart(&mut self) {
        self.kill9();
        eventually("the port is free again", || self.launch().then_some(()));
    }

    /// It answers nobody any more, and keeps all connections.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// It goes on.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let (_, pid) = self.process.as_ref().expect("it runs");
        kill_process(*pid, signal).expect("a process that was not waited for");
    }

    /// Moves its wall clock so far from the machine's.
    pub fn shift_clock(&self, ms: i64) {
        assert!(self.clock.is_some(), "asked for with `movable_clock`");
        moved_clock::shift(&self.folder.file("clock"), ms);
    }

    /// Starts the process and waits until it answers; false where it ended instead.
    fn launch(&mut self) -> bool {
        let mut command = Command::new("sh");
        command.args(["-c", WATCHED, "sh"]);
        command.arg(if self.ends_with_process { self.folder() } else { Path::new("") });
        command.arg("env");
        if let Some(library) = &self.clock {
            let [preload, shift] = moved_clock::variables(library, &self.folder.file("clock"));
            command.arg(format!("{}={}", preload.0, preload.1));
            command.arg(format!("{}={}", shift.0, shift.1));
        }
        if self.counted {
            command.args(["valgrind", "--tool=callgrind", "--instr-atstart=no"]);
            command.arg(format!("--callgrind-out-file={}/counts.%p", self.folder().display()));
        }
        command.arg("redis-server").arg(self.write_settings());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("a shell");
        let mut told = String::new();
        let stdout = process.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut told).expect("its process id");
        let pid = told.trim().parse().ok().and_then(Pid::from_raw).expect("its process id");
        self.process = Some((process, pid));
        let answers = eventually("redis-server answers", || match self.try_connect() {
            Some(_) => Some(true),
            None => has_ended(pid).then_some(false),
        });
        if !answers {
            self.kill9();
        }
        answers
    }

    fn write_settings(&self) -> PathBuf {
        let (port, tls_port) = if self.tls { (0, self.port) } else { (self.port, 0) };
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
        let mut lines = vec![
            "bind 127.0.0.1".to_owned(),
            format!("port {port}"),
            format!("dir {}", self.folder().display()),
            format!("unixsocket {}", self.socket().display()),
            "logfile redis.log".to_owned(),
            "save \"\"".to_owned(),
            "databases 1024".to_owned(),
            "maxmemory-policy noeviction".to_owned(),
            "repl-diskless-sync-delay 0".to_owned(),
        ];
        if self.tls {
            lines.push(format!("tls-port {tls_port}\ntls-auth-clients no"));
            lines.push(format!("tls-cert-file {}", data.join("localhost.cert.pem").display()));
            lines.push(format!("tls-key-file {}", data.join("localhost.key.pem").display()));
            lines.push(format!("tls-ca-cert-file {}", data.join("localhost.cert.pem").display()));
        }
        lines.extend(self.settings.iter().map(|(name, value)| format!("{name} {value}")));
        self.folder.write("redis.conf", &(lines.join("\n") + "\n"))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill9();
    }
}

/// A database of the server that all tests of this process share; emptied and given back where it is dropped.
pub struct RedisDb {
    server: &'static RedisServer,
    number: u32,
}

static SHARED: OnceLock<Option<RedisServer>> = OnceLock::new();
/// How many of its databases were used, and those that came back.
static RETURNED: Mutex<(u32, Vec<u32>)> = Mutex::new((0, Vec::new()));

impl RedisDb {
    /// An empty one. None, said loudly, where Redis isn't installed.
    pub fn take() -> Option<Self> {
        let server = SHARED.get_or_init(|| RedisServer::builder().ends_with_process().start()).as_ref()?;
        let mut returned = RETURNED.lock().unwrap_or_else(PoisonError::into_inner);
        let (used, returned) = &mut *returned;
        let number = returned.pop().unwrap_or_else(|| {
            *used += 1;
            *used - 1
        });
        Some(Self { server, number })
    }

    /// What a frontier in it is called.
    pub fn url(&self) -> String {
        self.server.url(self.number)
    }

    /// Says one command in it, as an operator does.
    #[track_caller]
    pub fn cli(&self, words: &[&str]) -> String {
        self.server.cli_in(self.number, words)
    }
}

impl Drop for RedisDb {
    fn drop(&mut self) {
        self.cli(&["FLUSHDB"]);
        RETURNED.lock().unwrap_or_else(PoisonError::into_inner).1.push(self.number);
    }
}

/// A port of loopback that nobody listens on, below those that connections get by themselves, so that it can be come back to.
pub fn free_port() -> u16 {
    let ports = std::iter::repeat_with(|| fastrand::u16(10_000..22_000));
    let mut free = ports.filter(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok());
    free.next().expect("one of twelve thousand")
}

/// Whether it is gone, or only its parent's not having looked is left of it.
fn has_ended(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.map_or(true, |stat| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('Z')))
}

//! The binary under test: started with arguments, signalled, and what it printed.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::keyboard::typed_at;
use super::{PATIENCE, TempData, eventually, moved_clock};

/// The binary's path.
pub fn paced() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_paced"))
}

/// The binary with its arguments, before it starts. It sees none of the variables that would change what it does.
#[must_use]
pub struct Paced {
    command: Command,
    stdin: Option<Vec<u8>>,
    fed: Option<Stdio>,
    typed: Option<String>,
}

impl Paced {
    /// With these arguments.
    pub fn new<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(paced());
        command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("PACED_")
                || text.starts_with("AWS_")
                || text.to_lowercase().ends_with("_proxy")
                || text == "RUST_LOG"
            {
                command.env_remove(&name);
            }
        }
        Self { command, stdin: None, fed: None, typed: None }
    }

    /// With one argument more.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// With more arguments.
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    /// With its data in this folder.
    pub fn data(self, data: &TempData) -> Self {
        self.data_at(data.path())
    }

    /// With its data in a folder that it makes itself.
    pub fn data_at(self, folder: &Path) -> Self {
        self.env("PACED_DATA", folder)
    }

    /// In this folder, from which relative paths are read.
    pub fn dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// With its standard output written there instead of gathered.
    pub fn stdout_to(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stdout(to);
        self
    }

    /// With its standard error written there instead of gathered.
    pub fn stderr_to(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stderr(to);
        self
    }

    /// With a variable of the environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// With a wall clock that [`moved_clock::shift`] moves by this file.
    pub fn movable_clock(mut self, file: &Path) -> Self {
        self.command.envs(moved_clock::variables(&moved_clock::library(), file));
        self
    }

    /// With this on its standard input; without it, nothing is there.
    pub fn stdin(self, text: &str) -> Self {
        self.stdin_bytes(text.as_bytes())
    }

    /// With this on its standard input, text or not.
    pub fn stdin_bytes(mut self, bytes: &[u8]) -> Self {
        self.stdin = Some(bytes.to_owned());
        self
    }

    /// With whatever comes from there on its standard input, when it comes.
    pub fn fed_by(mut self, from: impl Into<Stdio>) -> Self {
        self.fed = Some(from.into());
        self
    }

    /// At a terminal where this is typed; what it prints is gathered as ever.
    pub fn typed(mut self, text: &str) -> Self {
        self.typed = Some(text.to_owned());
        self
    }

    /// Runs it to its end.
    pub fn run(self) -> Run {
        self.start().finish()
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let (keyboard, stdin) = match self.typed.as_deref().map(typed_at) {
            Some((keyboard, terminal)) => (Some(keyboard), Stdio::from(terminal)),
            None if self.stdin.is_some() => (None, Stdio::piped()),
            None => (None, self.fed.unwrap_or_else(Stdio::null)),
        };
        self.command.stdin(stdin);
        let mut child = self.command.spawn().expect("the binary was built with the tests");
        if let (Some(text), Some(mut pipe)) = (self.stdin, child.stdin.take()) {
            // It may end without having read everything.
            std::thread::spawn(move || pipe.write_all(&text));
        }
        let stdout = Output::of(child.stdout.take());
        let stderr = Output::of(child.stderr.take());
        Running { child, stdout, stderr, keyboard }
    }
}

/// A process that runs; killed where it is dropped.
pub struct Running {
    child: Child,
    stdout: Output,
    stderr: Output,
    /// Of its terminal, which is there for as long as this is.
    keyboard: Option<File>,
}

impl Running {
    /// What it has printed so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// What it has logged so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// Waits until its log holds `text`.
    pub fn wait_for_stderr(&mut self, text: &str) {
        eventually(&format!("`{text}` on stderr"), || {
            let ended = self.ended();
            let log = self.stderr();
            assert!(log.contains(text) || !ended, "it ended without `{text}`:\n{log}");
            log.contains(text).then_some(())
        });
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn ended(&mut self) -> bool {
        self.status().is_some()
    }

    /// As Ctrl-C does.
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// As a supervisor does.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// As a power cut does: it has no chance to tidy up.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Any signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("a process that was not waited for");
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Run {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.status() {
                break status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "it doesn't end; its threads:\n{}\nits log:\n{}",
                threads(self.pid()),
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        Run { code: status.code(), stdout: self.stdout.end(), stderr: self.stderr.end() }
    }

    fn status(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of this process")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What each thread of a process waits for, as far as Linux tells.
fn threads(pid: u32) -> String {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return String::new() };
    let about = |task: std::fs::DirEntry| {
        let of = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        ["comm", "wchan", "syscall"].map(|name| of(name).trim().to_owned()).join(" ")
    };
    tasks.flatten().map(about).collect::<Vec<_>>().join("\n")
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    /// The results.
    pub stdout: String,
    /// The log.
    pub stderr: String,
}

impl Run {
    /// Fails, showing what it printed, unless it ended with this code.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert!(
            self.code == Some(code),
            "exit code {:?} instead of {code}\n--- stdout\n{}\n--- stderr\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        self
    }
}

/// What comes out of a pipe, gathered as it comes.
struct Output {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Output {
    /// What comes out of the pipe; nothing where the output goes elsewhere.
    fn of(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let Some(mut pipe) = pipe else { return Self { bytes, reader: None } };
        let gathered = Arc::clone(&bytes);
        let reader = std::thread::spawn(move || {
            let mut piece = [0; 8192];
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                lock(&gathered).extend_from_slice(&piece[..length]);
            }
        });
        Self { bytes, reader: Some(reader) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&lock(&self.bytes)).into_owned()
    }

    fn end(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader of a pipe");
        }
        self.text()
    }
}

fn lock(bytes: &Mutex<Vec<u8>>) -> MutexGuard<'_, Vec<u8>> {
    bytes.lock().unwrap_or_else(PoisonError::into_inner)
}

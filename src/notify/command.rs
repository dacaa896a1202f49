//! A program that is told an event on its standard input, without a shell. It has a process group of its own, so that it ends
//! with all that it started.

use std::io::{self, PipeReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

use crate::clock;

/// How long a program may take to end once it is asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long what an ended program said may take to come: others may have its output open.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// The most of its output that is kept, in bytes.
const KEPT: usize = 400;

/// Runs a program to its end, `within` a time at most; why it did not take the message.
pub(super) async fn run(words: &[String], message: &str, within: Duration) -> Result<(), String> {
    let cannot_start = |error: io::Error| format!("it can't be started: {error}");
    let (mut child, output) = start(words).map_err(cannot_start)?;
    let group = Group::of(&child);
    let mut said = Said::new(output).map_err(cannot_start)?;
    // It fits into the pipe, whether it is read or not. A program that doesn't read it may do without.
    let stdin = child.stdin.take();
    drop(stdin.map(|mut stdin| stdin.write_all(message.as_bytes())));
    let mut ending = tokio::task::spawn_blocking(move || child.wait());
    let ended = tokio::select! {
        ended = &mut ending => Some(ended),
        never = said.gather() => match never {},
        () = clock::wait(within) => None,
    };
    let Some(ended) = ended else {
        group.end(ending).await;
        let took = within.as_secs();
        return Err(format!("it took longer than {took}s and was ended{}", said.shown()));
    };
    group.leave();
    let status = ended.map_err(io::Error::other).flatten().map_err(|e| format!("its end is unknown: {e}"))?;
    if status.success() {
        return Ok(());
    }
    clock::within(LAST_WORDS, said.read_all()).await;
    Err(format!("it ended with {status}{}", said.shown()))
}

/// The program, and where it says something: on standard output or standard error.
fn start(words: &[String]) -> io::Result<(Child, PipeReader)> {
    let Some((program, args)) = words.split_first() else { return Err(io::ErrorKind::NotFound.into()) };
    let (reader, writer) = io::pipe()?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer).process_group(0);
    Ok((command.spawn()?, reader))
}

/// A process group. Where nobody waits for it any more, it is killed.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        Self(Some(Pid::from_child(child)))
    }

    /// Its program ended by itself.
    fn leave(mut self) {
        self.0 = None;
    }

    /// Asks it to end, and kills what is left.
    async fn end(self, ending: JoinHandle<io::Result<ExitStatus>>) {
        self.signal(Signal::TERM);
        let ending = async {
            let _ = ending.await;
        };
        let mut ending = Box::pin(ending);
        if clock::within(GRACE, &mut ending).await.is_none() {
            self.signal(Signal::KILL);
            clock::within(GRACE, ending).await;
        }
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            // It fails only where nothing is left of it.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

/// What a program says.
struct Said {
    pipe: Receiver,
    kept: Vec<u8>,
}

impl Said {
    fn new(output: PipeReader) -> io::Result<Self> {
        Ok(Self { pipe: Receiver::from_owned_fd(OwnedFd::from(output))?, kept: Vec::new() })
    }

    /// Reads for as long as there is something, so that it isn't kept from going on; keeps the beginning.
    async fn read_all(&mut self) {
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = self.pipe.read(&mut piece).await {
            let room = KEPT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&piece[..length.min(room)]);
        }
    }

    async fn gather(&mut self) -> std::convert::Infallible {
        self.read_all().await;
        std::future::pending().await
    }

    fn shown(&self) -> String {
        let said = String::from_utf8_lossy(&self.kept).trim().to_owned();
        if said.is_empty() { String::new() } else { format!("; it said: {said}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    async fn shell(script: &str, within: Duration) -> Result<(), String> {
        run(&["/bin/sh", "-c", script].map(str::to_owned), "{\"event\":\"test\"}", within).await
    }

    #[tokio::test]
    async fn c19_a_program_reads_the_event_and_then_its_input_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let told = folder.path().join("told");
        shell(&format!("cat > {}", told.display()), LONG).await.expect("it ends well");
        assert_eq!(std::fs::read_to_string(told).expect("it was written"), "{\"event\":\"test\"}");
        shell("exec <&-; exit 0", LONG).await.expect("it need not read");
    }

    #[tokio::test]
    async fn c19_one_that_fails_is_told_with_what_it_said_and_however_much_it_says_it_goes_on() {
        let failed = shell("echo no route >&2; exit 3", LONG).await;
        assert_eq!(failed, Err("it ended with exit status: 3; it said: no route".to_owned()));
        let long = shell("head -c 300000 /dev/zero | tr '\\0' x; exit 1", LONG).await.expect_err("it fails");
        assert!(long.len() < 500 && long.contains("xxx"), "{} bytes", long.len());
        let nowhere = run(&["/no/such/program".to_owned()], "{}", LONG).await.expect_err("there is none");
        assert!(nowhere.starts_with("it can't be started: No such file"), "{nowhere}");
    }

    #[tokio::test]
    async fn c19_one_that_hangs_ends_with_its_children_though_they_ignore_that_they_are_asked_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let pids = folder.path().join("pids");
        let script =
            format!("trap '' TERM; (trap '' TERM; sleep 300) & echo $! $$ > {}; wait", pids.display());
        let failed = shell(&script, Duration::from_secs(1)).await.expect_err("it hangs");
        assert_eq!(failed, "it took longer than 1s and was ended");
        let pids = std::fs::read_to_string(pids).expect("it was written");
        let lives = |pid: &str| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            !stat.is_empty() && !stat.contains(") Z ")
        };
        for pid in pids.split_whitespace() {
            while lives(pid) {
                clock::wait(Duration::from_millis(20)).await;
            }
        }
    }

    #[tokio::test]
    async fn c19_nobody_waits_for_what_a_program_left_behind() {
        let folder = tempfile::tempdir().expect("a folder");
        let over = folder.path().join("over");
        for (exit, is_well) in [(0, true), (1, false)] {
            let script = format!("(sleep 10; touch {}) & exit {exit}", over.display());
            assert_eq!(shell(&script, LONG).await.is_ok(), is_well);
            assert!(!over.exists(), "it was waited for");
        }
    }
}

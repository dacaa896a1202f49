//! A real disk that can be full: a file system in memory, mounted where only this test and its processes see it.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::TempData;

/// Set in the process that has mounts of its own.
const INSIDE: &str = "PACED_TEST_MOUNTS";

/// Runs a test again in a process of its own that may mount; `test` is its full name. There, `body` is run; where nobody
/// may have mounts of his own, that is said loudly.
pub fn with_mounts(test: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    if !may_mount() {
        let is_root = rustix::process::geteuid().is_root();
        assert!(std::env::var_os("CI").is_none() || !is_root, "root may have mounts of its own: {test}");
        let _ = writeln!(std::io::stderr(), "SKIPPED: no mounts of its own may be made here: {test}");
        return;
    }
    let program = std::env::current_exe().expect("this test's own program");
    let mut again =
        unshare(&[&program.to_string_lossy(), test, "--exact", "--nocapture", "--test-threads=1"]);
    let ended = again.env(INSIDE, "1").status().expect("the same program again");
    assert!(ended.success(), "{test} failed where it has mounts of its own");
}

/// Whether processes may have mounts of their own here.
pub fn may_mount() -> bool {
    unshare(&["true"]).output().is_ok_and(|tried| tried.status.success())
}

fn unshare(words: &[&str]) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).args(words);
    command
}

/// A small disk at a data folder. It goes with the process.
pub struct SmallDisk {
    data: TempData,
    kib: u64,
}

impl SmallDisk {
    /// A disk of so many KiB.
    pub fn new(kib: u64) -> Self {
        let data = TempData::new();
        mount(&["-t", "tmpfs", "-o", &format!("size={kib}k,mode=755"), "tmpfs"], data.path());
        Self { data, kib }
    }

    /// The folder that it is mounted at.
    pub fn data(&self) -> &TempData {
        &self.data
    }

    /// From now on there is no space left on it but `spare` KiB.
    pub fn fill(&self, spare: u64) {
        // What is written meanwhile makes a size too small.
        while !self.resize(self.used_kib() + spare) {}
    }

    /// From now on there is space again.
    pub fn free(&self) {
        assert!(self.resize(self.kib), "a disk can grow");
    }

    /// Nothing can be written to it any more; or again.
    pub fn read_only(&self, is_so: bool) {
        mount(&["-o", if is_so { "remount,ro" } else { "remount,rw" }], self.data.path());
    }

    fn used_kib(&self) -> u64 {
        let disk = rustix::fs::statvfs(self.data.path()).expect("a disk");
        (disk.f_blocks - disk.f_bfree) * disk.f_frsize / 1024
    }

    fn resize(&self, kib: u64) -> bool {
        let mut command = Command::new("mount");
        command.args(["-o", &format!("remount,size={kib}k")]).arg(self.data.path());
        command.output().expect("mount").status.success()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, as the processes of a test that failed may still be there.
        let _ = Command::new("umount").arg("-l").arg(self.data.path()).output();
    }
}

fn mount(words: &[&str], at: &Path) {
    let done = Command::new("mount").args(words).arg(at).output().expect("mount");
    assert!(done.status.success(), "mount {words:?}: {}", String::from_utf8_lossy(&done.stderr));
}

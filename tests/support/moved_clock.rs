//! A process whose wall clock jumps while it runs, by a library that is loaded before the system's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// Moves the wall clock so far from the machine's of whoever was started with this file.
pub fn shift(file: &Path, ms: i64) {
    let fresh = file.with_extension("new");
    fs::write(&fresh, ms.to_string()).and_then(|()| fs::rename(&fresh, file)).expect("its folder");
}

/// What a process is started with, so that this file moves its wall clock.
pub fn variables(library: &Path, file: &Path) -> [(&'static str, String); 2] {
    [("LD_PRELOAD", library.display().to_string()), ("CLOCK_SHIFT", file.display().to_string())]
}

/// The library that moves a process's wall clock, built once for each state of its source.
pub fn library() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(build).clone()
}

fn build() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/moved_clock.c");
    let hash = blake3::hash(&fs::read(&source).expect("its source")).to_hex();
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("clock-{}.so", &hash[..16]));
    if !library.is_file() {
        let fresh = library.with_extension(std::process::id().to_string());
        let mut cc = Command::new("cc");
        let status = cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&fresh).arg(&source).status();
        assert!(status.is_ok_and(|status| status.success()), "the C compiler that the build needs as well");
        fs::rename(&fresh, &library).expect("a folder of the build");
    }
    library
}

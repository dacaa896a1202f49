//! A terminal at which a test types.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

/// A terminal at which this was typed, to be read from as standard input; and its keyboard, without which it is gone.
pub fn typed_at(text: &str) -> (File, OwnedFd) {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let keyboard = openpt(flags).expect("a pseudoterminal");
    unlockpt(&keyboard).expect("a pseudoterminal of this process");
    let terminal = ioctl_tiocgptpeer(&keyboard, flags).expect("its other end");
    let mut keyboard = File::from(keyboard);
    keyboard.write_all(text.as_bytes()).expect("room for some lines");
    (keyboard, terminal)
}

//! Lines that wait to be written, by the file that they go to.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::SinkError;
use super::lines::{ItemLine, LineFile, one_by_one};
use super::writer::WriterName;
use crate::plain_text::plain_json;

/// Once so many files of items may be open, those that nothing waits for are closed.
const MAX_OPEN: usize = 256;
/// Once so many bytes wait, they are written.
const MOST_WAITING: usize = 1 << 20;

/// Where lines go, and which of them wait.
#[derive(Debug)]
pub(super) struct Target {
    destination: Destination,
    /// By site; under no name where all go to one place.
    queues: HashMap<String, Queue>,
    /// How many bytes wait.
    waiting: usize,
}

#[derive(Debug)]
pub(super) enum Destination {
    /// A file a site, or a site and writer.
    Folder {
        dir: PathBuf,
        writer: Option<WriterName>,
    },
    One(Outlet),
}

/// An outlet, and the lines that wait for it.
#[derive(Debug)]
struct Queue {
    outlet: Outlet,
    lines: Vec<ItemLine>,
}

/// Takes lines.
#[derive(Clone, Debug)]
pub(super) enum Outlet {
    File(Arc<LineFile>),
    Stdout,
}

/// Lines that are to be written now.
#[derive(Debug)]
pub(super) struct Due {
    name: String,
    pub(super) outlet: Outlet,
    pub(super) lines: Vec<ItemLine>,
}

impl Target {
    pub(super) fn to(destination: Destination) -> Self {
        Self { destination, queues: HashMap::new(), waiting: 0 }
    }

    /// Lets a line wait for its site's file.
    pub(super) fn put(&mut self, site: &str, line: ItemLine) -> Result<(), SinkError> {
        let name = if matches!(self.destination, Destination::One(_)) { "" } else { site };
        if !self.queues.contains_key(name) {
            let outlet = self.destination.outlet(name)?;
            self.queues.insert(name.to_owned(), Queue { outlet, lines: Vec::new() });
        }
        let queue = self.queues.get_mut(name).expect("it was put in above");
        self.waiting += line.bytes.len();
        queue.lines.push(line);
        Ok(())
    }

    /// Whether what waits should be written, and files closed, before there is more.
    pub(super) fn is_full(&self) -> bool {
        self.queues.len() >= MAX_OPEN || self.waiting >= MOST_WAITING
    }

    /// Closes the files that nothing waits for.
    pub(super) fn close_idle(&mut self) {
        self.queues.retain(|_, queue| !queue.lines.is_empty());
    }

    /// All that waits.
    pub(super) fn take(&mut self) -> Vec<Due> {
        self.waiting = 0;
        let due = self.queues.iter_mut().filter(|(_, queue)| !queue.lines.is_empty());
        due.map(|(name, queue)| {
            let lines = std::mem::take(&mut queue.lines);
            Due { name: name.clone(), outlet: queue.outlet.clone(), lines }
        })
        .collect()
    }

    /// Lets lines wait again that could not be written, before those that came since.
    pub(super) fn put_back(&mut self, due: Due) {
        self.waiting += due.lines.iter().map(|line| line.bytes.len()).sum::<usize>();
        let new = Queue { outlet: due.outlet, lines: Vec::new() };
        self.queues.entry(due.name).or_insert(new).lines.splice(0..0, due.lines);
    }
}

impl Destination {
    /// Where the lines of a site go.
    fn outlet(&self, site: &str) -> Result<Outlet, SinkError> {
        let (dir, writer) = match self {
            Self::Folder { dir, writer } => (dir, writer),
            Self::One(outlet) => return Ok(outlet.clone()),
        };
        if site.is_empty() || site.starts_with('.') || site.contains(['/', '\0']) {
            return Err(SinkError::Name(site.to_owned()));
        }
        let file = writer.as_ref().map_or_else(|| format!("{site}.jsonl"), |writer| writer.file_of(site));
        Ok(Outlet::File(Arc::new(LineFile::at(dir.join(file)))))
    }
}

impl Outlet {
    /// Hands whole lines to the system: where that is a file, all of them or none.
    pub(super) fn append(&self, lines: &[ItemLine]) -> Result<(), SinkError> {
        match self {
            Self::File(file) => file.append(lines),
            Self::Stdout => print(lines).map_err(|e| SinkError::io("write to", Path::new("stdout"), e)),
        }
    }

    /// Waits until all that was appended is on the disk.
    pub(super) fn sync(&self) -> Result<(), SinkError> {
        match self {
            Self::File(file) => file.sync(),
            Self::Stdout => Ok(()),
        }
    }
}

fn print(lines: &[ItemLine]) -> io::Result<()> {
    let mut stdout = PlainLines(io::stdout().lock());
    one_by_one(&mut stdout, lines)?;
    stdout.flush()
}

/// Lines of JSON that may go to a terminal: each write is whole lines.
struct PlainLines<W>(W);

impl<W: Write> Write for PlainLines<W> {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            match std::str::from_utf8(line).ok().and_then(|line| line.strip_suffix('\n')) {
                Some(json) => writeln!(self.0, "{}", plain_json(json))?,
                None => self.0.write_all(line)?,
            }
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn line(bytes: &[u8]) -> ItemLine {
        ItemLine { bytes: bytes.to_vec(), until: Duration::MAX, written: Arc::default() }
    }

    #[test]
    fn what_could_not_be_written_waits_before_what_came_since() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut target = Target::to(Destination::Folder { dir: dir.path().to_owned(), writer: None });
        target.put("a", line(b"1\n")).expect("room");
        let mut due = target.take();
        assert!(target.take().is_empty());
        // Who makes room meanwhile closes the file.
        target.close_idle();
        target.put("a", line(b"2\n")).expect("room");
        target.put_back(due.remove(0));
        let lines = target.take().remove(0).lines;
        assert_eq!(lines.iter().map(|line| &line.bytes[..]).collect::<Vec<_>>(), [b"1\n", b"2\n"]);
    }

    #[test]
    fn a_mebibyte_of_lines_is_to_be_written() {
        let mut target = Target::to(Destination::One(Outlet::Stdout));
        let kib = [b'x'; 1 << 10];
        for _ in 0..MOST_WAITING / kib.len() {
            assert!(!target.is_full());
            target.put("a", line(&kib)).expect("room");
        }
        assert!(target.is_full());
        let due = target.take().remove(0);
        assert!(!target.is_full());
        target.put_back(due);
        assert!(target.is_full());
    }
}

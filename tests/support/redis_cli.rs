//! A connection to Redis with nothing of the product in it: words out, the answer in.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer may take. Only a server that hangs reaches it.
const PATIENCE: Duration = Duration::from_secs(20);

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// What Redis answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing is there.
    Nil,
    /// A number.
    Number(i64),
    /// A text.
    Text(String),
    /// It refused.
    Error(String),
    /// Several answers.
    List(Vec<Self>),
}

impl Said {
    /// As `redis-cli` prints it into a pipe: one line an entry, nothing for nil.
    pub fn text(&self) -> String {
        match self {
            Self::Nil => String::new(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) | Self::Error(text) => text.clone(),
            Self::List(entries) => entries.iter().map(Self::text).collect::<Vec<_>>().join("\n"),
        }
    }
}

/// An open connection.
pub struct RedisCli(BufReader<Box<dyn Wire>>);

impl RedisCli {
    /// To a port on loopback.
    pub fn tcp(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(Box::new(stream))))
    }

    /// To a socket file.
    pub fn unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self(BufReader::new(Box::new(stream))))
    }

    /// Says one command and waits for the answer.
    pub fn say(&mut self, words: &[&str]) -> io::Result<Said> {
        let mut told = vec![format!("*{}\r\n", words.len())];
        told.extend(words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())));
        self.0.get_mut().write_all(told.concat().as_bytes())?;
        self.hear()
    }

    /// The next answer, or what is told unasked.
    pub(super) fn hear(&mut self) -> io::Result<Said> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(match kind {
            "+" => Said::Text(rest.to_owned()),
            "-" => Said::Error(rest.to_owned()),
            ":" => Said::Number(count(rest)?),
            "$" => match usize::try_from(count(rest)?) {
                Ok(length) => Said::Text(self.bulk(length)?),
                Err(_) => Said::Nil,
            },
            "*" => match usize::try_from(count(rest)?) {
                Ok(length) => Said::List((0..length).map(|_| self.hear()).collect::<io::Result<_>>()?),
                Err(_) => Said::Nil,
            },
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, line)),
        })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        Ok(line.trim_end_matches("\r\n").to_owned())
    }

    fn bulk(&mut self, length: usize) -> io::Result<String> {
        let mut bytes = vec![0; length + 2];
        self.0.read_exact(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes[..length]).into_owned())
    }
}

fn count(text: &str) -> io::Result<i64> {
    text.parse().map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))
}

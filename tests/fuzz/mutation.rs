//! Inputs made from seeds by chance: bytes changed, runs taken out, doubled, brought over from another seed.

use fastrand::Rng;

/// No input is longer: time is better spent on many.
const LONGEST: usize = 16 * 1024;

/// Bytes that end things, begin things, or are the largest or least of their kind.
const ODD: &[&[u8]] = &[
    b"",
    b"\0",
    b"\n",
    b"\r\n",
    b"\r\n\r\n",
    b"\"",
    b"'",
    b"\\",
    b"/",
    b"%",
    b"%2F",
    b"%00",
    b"*",
    b"$",
    b"#",
    b":",
    b";",
    b"=",
    b"&",
    b"?",
    b"@",
    b"[",
    b"]",
    b"<",
    b">",
    b"<!--",
    b"-->",
    b"<p",
    b"</",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xfe\xff",
    b"\xff\xfe",
    b"\x1b$B",
    b"\xe3\x81",
    "é".as_bytes(),
    "𝟙".as_bytes(),
    "\u{202e}".as_bytes(),
    b"0",
    b"-1",
    b"1e308",
    b"NaN",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999999",
    b"9223372036854775807",
    b"\x1f\x8b",
    b"WARC/1.0\r\n",
    b"WARC/1.1\r\n",
    b"HTTP/1.1 200",
    b"Content-Length: ",
    b"User-agent: *\n",
    b"Disallow: /",
    b"[[page]]\n",
    b"[pace]\n",
    b"interval = ",
    b"<script type=application/ld+json>",
    b"{\"@type\":\"Product\"}",
    b"charset=",
    b"<meta charset=",
    b"<base href=",
    b"<a href=",
    b"http://",
    b"..",
    b"%2e",
    b"{%900*",
    b"%}",
    b"#%",
    b"\n--\n",
    b"{\"@id\":\"1\"}",
    b" itemscope itemprop=offers",
    b"null",
    b"\xc0",
    b"\xdf",
    b"*3\r\n",
    b"$-1\r\n",
    b"\r\n\r\nWARC/1.0\r\n",
    b"Transfer-Encoding: chunked\r\n",
];

/// Mutations of seeds, one after another.
pub struct Mutation<'a> {
    seeds: &'a [Vec<u8>],
    random: Rng,
}

impl<'a> Mutation<'a> {
    /// Mutations of `seeds`; the same `start` gives the same ones.
    pub fn of(seeds: &'a [Vec<u8>], start: u64) -> Self {
        Self { seeds, random: Rng::with_seed(start) }
    }

    /// The next one.
    pub fn next(&mut self) -> Vec<u8> {
        let mut bytes = self.piece(LONGEST);
        for _ in 0..1 << self.random.u32(0..6) {
            self.change(&mut bytes);
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn change(&mut self, bytes: &mut Vec<u8>) {
        let (from, to) = self.run(bytes.len());
        match self.random.u32(0..8) {
            0 if !bytes.is_empty() => {
                let at = self.random.usize(0..bytes.len());
                bytes[at] ^= 1 << self.random.u32(0..8);
            }
            1 if !bytes.is_empty() => {
                let at = self.random.usize(0..bytes.len());
                bytes[at] = self.random.u8(..);
            }
            2 => drop(bytes.drain(from..to)),
            3 => {
                let run = bytes[from..to].to_vec();
                bytes.splice(from..from, run);
            }
            4 => {
                let run = self.piece(256);
                bytes.splice(from..to, run);
            }
            5 => bytes.truncate(to),
            6 => {
                let odd = self.odd().repeat(1 << self.random.u32(0..5));
                bytes.splice(from..from, odd);
            }
            _ => {
                let odd = self.odd().to_vec();
                bytes.splice(from..to, odd);
            }
        }
    }

    fn odd(&mut self) -> &'static [u8] {
        ODD[self.random.usize(0..ODD.len())]
    }

    /// A run within a text of that length, mostly a short one.
    fn run(&mut self, length: usize) -> (usize, usize) {
        let from = self.random.usize(0..=length);
        let most = (length - from).min(1 << self.random.u32(0..9));
        (from, from + self.random.usize(0..=most))
    }

    /// A piece of a seed: mostly its beginning, which says what it is.
    fn piece(&mut self, most: usize) -> Vec<u8> {
        let seed = &self.seeds[self.random.usize(0..self.seeds.len())];
        let past = seed.len().saturating_sub(most);
        let from = if past > 0 && self.random.bool() { self.random.usize(0..past) } else { 0 };
        seed[from..(from + most).min(seed.len())].to_vec()
    }
}

//! The barest claim on Redis, to compare with on the same machine.

use super::share;

/// A due site, its lock, its first task, and nothing kept that a crash or a resent call would need.
const BARE: &str = "local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local due = redis.call('ZCOUNT', 'bare:due', '-inf', now)
    local nth = due > 0 and string.format('%d', ARGV[1] % due)
    local site = nth and redis.call('ZRANGE', 'bare:due', nth, nth)[1]
    if not site or not redis.call('SET', 'bare:lock:' .. site, ARGV[1], 'NX', 'PX', 1) then return false end
    redis.call('ZADD', 'bare:due', now + 1, site)
    return redis.call('LMOVE', 'bare:tasks:' .. site, 'bare:leased', 'LEFT', 'RIGHT')";
const FILL_BARE: &str = "for site = 1, ARGV[1] do
        redis.call('ZADD', 'bare:due', 0, 'site' .. site)
        for page = 1, ARGV[2] do redis.call('RPUSH', 'bare:tasks:site' .. site, 'https://www.example.com/products/' .. page) end
    end";
/// How many are made in a row.
pub const BAREST_CLAIMS: u64 = 2_000;

/// The barest claim, ready to be made.
pub struct BarestClaim(String);

impl BarestClaim {
    /// Fills the queues of so many sites; `say` sends a command.
    pub fn ready(mut say: impl FnMut(&[&str]) -> String, sites: u64) -> Self {
        let sites = sites.clamp(1, 10_000);
        let each = BAREST_CLAIMS / sites + 10;
        say(&["EVAL", FILL_BARE, "0", &sites.to_string(), &each.to_string()]);
        Self(say(&["SCRIPT", "LOAD", BARE]).trim().to_owned())
    }

    /// Makes one.
    pub fn make(&self, mut say: impl FnMut(&[&str]) -> String) {
        say(&["EVALSHA", &self.0, "0", &fastrand::u32(..1_000_000).to_string()]);
    }

    /// Microseconds of the server that one took so far.
    pub fn micros(mut say: impl FnMut(&[&str]) -> String) -> f64 {
        let stats = say(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap_or_default();
        let count = |name: &str| {
            let field = line.split(',').find_map(|field| field.strip_prefix(name));
            field.and_then(|count| count.parse().ok()).expect("it counts")
        };
        share(count("usec="), count("calls="))
    }
}

/// Microseconds of the server that the barest claim takes among so many sites, one made right after the other.
pub fn barest_claim(mut say: impl FnMut(&[&str]) -> String, sites: u64) -> f64 {
    let claim = BarestClaim::ready(&mut say, sites);
    say(&["CONFIG", "RESETSTAT"]);
    (0..BAREST_CLAIMS).for_each(|_| claim.make(&mut say));
    BarestClaim::micros(say)
}

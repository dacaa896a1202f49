//! The barest claim on Redis, to compare with on the same machine.

use super::spent::Spent;

/// One of the first 64 due sites, its lock, its first task, and nothing kept that a crash or a resent call would need.
const BARE: &str = "local time = redis.call('TIME')
    local now = time[1] * 1000 + math.floor(time[2] / 1000)
    local due = redis.call('ZRANGEBYSCORE', 'bare:due', '-inf', now, 'LIMIT', 0, 64)
    local site = due[ARGV[1] % math.max(#due, 1) + 1]
    if not site or not redis.call('SET', 'bare:lock:' .. site, ARGV[1], 'NX', 'PX', 1) then return false end
    redis.call('ZADD', 'bare:due', now + 1, site)
    return redis.call('LMOVE', 'bare:tasks:' .. site, 'bare:leased', 'LEFT', 'RIGHT')";
const FILL_BARE: &str = "for site = 1, ARGV[1] do
        redis.call('ZADD', 'bare:due', 0, 'site' .. site)
        for page = 1, ARGV[2] do redis.call('RPUSH', 'bare:tasks:site' .. site, 'https://www.example.com/products/' .. page) end
    end";
/// How many are made in a row.
const BAREST_CLAIMS: u64 = 2_000;

/// The barest claim, ready to be made.
pub struct BarestClaim(String);

impl BarestClaim {
    const COMMAND: &str = "evalsha";

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
}

/// What so many of them take of a server among so many sites, one made right after the other.
pub fn barest_claims(mut say: impl FnMut(&[&str]) -> String, sites: u64) -> Spent {
    let claim = BarestClaim::ready(&mut say, sites);
    let before = Spent::on(BarestClaim::COMMAND, &mut say);
    (0..BAREST_CLAIMS).for_each(|_| claim.make(&mut say));
    Spent::on(BarestClaim::COMMAND, &mut say).since(before)
}

//! The barest claim on Redis, to compare with on the same machine.

use super::share;

/// A due site, its lock, its first task, and nothing kept that a crash or a resent call would need.
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
/// How many are made.
pub const BAREST_CLAIMS: u64 = 2_000;

/// Microseconds of the server that the barest claim takes among so many sites; `say` sends a command.
pub fn barest_claim(mut say: impl FnMut(&[&str]) -> String, sites: u64) -> f64 {
    let sites = sites.clamp(1, 10_000);
    let each = BAREST_CLAIMS / sites + 10;
    say(&["EVAL", FILL_BARE, "0", &sites.to_string(), &each.to_string()]);
    let script = say(&["SCRIPT", "LOAD", BARE]);
    say(&["CONFIG", "RESETSTAT"]);
    for _ in 0..BAREST_CLAIMS {
        say(&["EVALSHA", script.trim(), "0", &fastrand::u32(..1_000_000).to_string()]);
    }
    let stats = say(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:")).unwrap_or_default();
    let spent = line.split(',').find_map(|field| field.strip_prefix("usec="));
    share(spent.and_then(|usec| usec.parse().ok()).expect("it counts"), BAREST_CLAIMS)
}

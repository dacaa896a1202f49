//! One batch on its way to a partition, and the number under which it goes.

use redis::{RedisError, RedisResult};

use super::client::RedisClient;
use super::program::{Function, call};

/// A batch that is sent until it is answered.
pub(super) struct BatchCall {
    pub(super) steps: Vec<u8>,
    /// It changes nothing, and needs no number.
    pub(super) reads: bool,
    /// None before it was first sent.
    pub(super) number: Option<u64>,
    /// When it was first sent, in microseconds since boot.
    pub(super) asked: Option<i64>,
}

/// A client that the server knows: its name, and the number of its newest batch.
pub(super) struct Joined {
    client: String,
    number: u64,
}

impl BatchCall {
    /// Sends it once, under the number that it was sent under before. If the server doesn't know the client any more, it is
    /// sent as the first batch of another one.
    ///
    /// Nothing is lost by that, and nothing done twice. Sent for the first time, it was refused and not done. Sent again, it
    /// was perhaps done before:
    ///
    /// * The server lost its memory, or a part of it. What the batch did and its number are written together, so both are lost.
    /// * The client was forgotten, as it wasn't heard of for two minutes (`lua/client.lua`). A process that does one thing
    ///   gives up before that. A worker tries for ever, and its steps bear being done twice: claims and settlements are known
    ///   by their tokens, leases that old are lost, a link is known, and a re-crawl or redirect is put once more harmlessly.
    pub(super) async fn run(
        &mut self,
        server: &mut RedisClient,
        key: &str,
        joined: &mut Option<Joined>,
        fake: &str,
    ) -> RedisResult<Vec<u8>> {
        match self.run_once(server, key, joined, fake).await {
            Err(error) if is_refused(&error) => {}
            called => return called,
        }
        (*joined, self.number) = (None, None);
        self.run_once(server, key, joined, fake).await
    }

    async fn run_once(
        &mut self,
        server: &mut RedisClient,
        key: &str,
        joined: &mut Option<Joined>,
        fake: &str,
    ) -> RedisResult<Vec<u8>> {
        if self.reads {
            let args = [b"", b"", fake.as_bytes(), &self.steps];
            return call(server, Function::Read, key, &args).await;
        }
        let joined = match joined {
            Some(joined) => joined,
            None => joined.insert(Joined::join(server, key).await?),
        };
        let number = self.number.get_or_insert_with(|| joined.next()).to_string();
        let args = [joined.client.as_bytes(), number.as_bytes(), fake.as_bytes(), &self.steps];
        call(server, Function::Run, key, &args).await
    }
}

impl Joined {
    /// Says hello, under a name that nobody had.
    async fn join(server: &mut RedisClient, key: &str) -> RedisResult<Self> {
        let client = format!("{:016x}", fastrand::u64(..));
        let args = [client.as_bytes(), b"", b"", b""];
        let number: u64 = call(server, Function::Run, key, &args).await?;
        Ok(Self { client, number })
    }

    fn next(&mut self) -> u64 {
        self.number += 1;
        self.number
    }
}

/// Whether a batch was refused for its number, or for who sent it.
fn is_refused(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOTJOINED" | "OVERTAKEN"))
}

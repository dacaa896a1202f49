//! What runs on the server: the files of `lua/`, joined in the order in which they use each other. A server that keeps
//! functions (Redis 7) makes them once and calls them again and again; another one runs the same as a script.

use std::sync::atomic::{AtomicBool, Ordering};

use redis::{Cmd, ErrorKind, RedisError, RedisResult, Script, ServerErrorKind, cmd};
use tracing::debug;

use super::connector::Server;

/// The whole of it, but for its end.
const SOURCE: &str = concat!(
    include_str!("lua/asked.lua"),
    include_str!("lua/packed.lua"),
    include_str!("lua/store.lua"),
    include_str!("lua/tasks.lua"),
    include_str!("lua/records.lua"),
    include_str!("lua/pages.lua"),
    include_str!("lua/places.lua"),
    include_str!("lua/put.lua"),
    include_str!("lua/lease.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/feed.lua"),
    include_str!("lua/wake.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/lock.lua"),
    include_str!("lua/directory.lua"),
    include_str!("lua/site.lua"),
    include_str!("lua/rename.lua"),
    include_str!("lua/owners.lua"),
    include_str!("lua/letters.lua"),
    include_str!("lua/view.lua"),
    include_str!("lua/run.lua"),
);

/// One batch as it is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call<'a> {
    /// The partition's key.
    pub(super) key: &'a str,
    pub(super) args: [&'a [u8]; 4],
    /// Nothing in it changes anything: it is answered also while the server takes no writes.
    pub(super) reads: bool,
}

/// The program as it is called: by its hash, so that two versions don't meet, and brought again where a server forgot it.
pub(super) struct Program {
    script: Script,
    name: String,
    /// The server was asked whether it knows functions.
    asked: AtomicBool,
    /// It was found to keep no functions, or to let this user make none.
    refused: AtomicBool,
}

impl Program {
    pub(super) fn new() -> Self {
        let script = Script::new(&format!("{SOURCE}return run(KEYS, ARGV)\n"));
        let name = format!("paced_{}", &script.get_hash()[..16]);
        Self { script, name, asked: AtomicBool::new(false), refused: AtomicBool::new(false) }
    }

    /// Another server may be there now.
    pub(super) fn look_again(&self) {
        self.asked.store(false, Ordering::SeqCst);
        self.refused.store(false, Ordering::SeqCst);
    }

    /// Runs a batch.
    pub(super) async fn run(&self, server: &mut Server, call: Call<'_>) -> RedisResult<Vec<u8>> {
        if !self.refused.load(Ordering::SeqCst) {
            match self.call_function(server, call).await {
                Err(error) if is_refusal(&error) => {
                    debug!(%error, "the server keeps no functions for this user: a script is called");
                    self.refused.store(true, Ordering::SeqCst);
                }
                called => return called,
            }
        }
        let mut script = self.script.key(call.key);
        for arg in call.args {
            script.arg(arg);
        }
        server.invoke(&script).await
    }

    /// Calls a function that nobody made. A server that knows none answers with the words it was sent, so that these must be
    /// text: what a batch is written in can't be read as an answer.
    async fn probe(&self, server: &mut Server) -> RedisResult<()> {
        if self.asked.load(Ordering::SeqCst) {
            return Ok(());
        }
        let mut command = cmd("FCALL");
        command.arg("paced_probe").arg(0);
        match server.query(&command).await {
            Err(error) if !is_unknown_function(&error) => return Err(error),
            Ok(()) | Err(_) => {}
        }
        self.asked.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn call_function(&self, server: &mut Server, call: Call<'_>) -> RedisResult<Vec<u8>> {
        self.probe(server).await?;
        let name = if call.reads { format!("{}_reads", self.name) } else { self.name.clone() };
        let mut command = cmd("FCALL");
        command.arg(name).arg(1).arg(call.key);
        for arg in call.args {
            command.arg(arg);
        }
        match server.query(&command).await {
            Err(error) if is_unknown_function(&error) => {}
            called => return called,
        }
        let _: String = server.query(&self.load()).await?;
        server.query(&command).await
    }

    /// Brings the library; on a cluster to each of its masters.
    fn load(&self) -> Cmd {
        let name = &self.name;
        // What a library is made of can't be reached before its first call.
        let library = format!(
            "#!lua name={name}\nlocal function make()\n{SOURCE}return run\nend\nlocal made
local function call(keys, args)\n  made = made or make()\n  return made(keys, args)\nend
redis.register_function{{ function_name = '{name}', callback = call, flags = {{ 'allow-oom' }} }}
redis.register_function{{ function_name = '{name}_reads', callback = call, flags = {{ 'allow-oom', 'no-writes' }} }}\n"
        );
        let mut load = cmd("FUNCTION");
        load.arg("LOAD").arg("REPLACE").arg(library);
        load
    }
}

fn is_unknown_function(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("Function not found"))
}

/// The server doesn't know the command, or doesn't let this user call it, or has no room for a library.
fn is_refusal(error: &RedisError) -> bool {
    matches!(error.code(), Some("NOPERM" | "OOM"))
        || is_unknown_function(error)
        || (error.kind() == ErrorKind::Server(ServerErrorKind::ResponseError)
            && error.detail().is_some_and(|detail| detail.contains("nknown command")))
}

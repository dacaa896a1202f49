//! The program that runs on the server: the files of `lua/`, in the order in which they use each other, as a library of
//! functions. Its name holds its hash, so that two versions don't meet.

use std::sync::LazyLock;

use redis::{Cmd, FromRedisValue, RedisError, RedisResult, cmd};
use sha1::{Digest, Sha1};

use super::client::RedisClient;
use super::prelude::with_constants;

/// What all functions of the library share, each file after those that it uses.
pub(super) const FILES: [&str; 36] = [
    include_str!("lua/asked.lua"),
    include_str!("lua/packed.lua"),
    include_str!("lua/store.lua"),
    include_str!("lua/gate.lua"),
    include_str!("lua/lanes.lua"),
    include_str!("lua/tasks.lua"),
    include_str!("lua/kept.lua"),
    include_str!("lua/records.lua"),
    include_str!("lua/flow.lua"),
    include_str!("lua/batches.lua"),
    include_str!("lua/pages.lua"),
    include_str!("lua/places.lua"),
    include_str!("lua/sessions.lua"),
    include_str!("lua/walls.lua"),
    include_str!("lua/lease.lua"),
    include_str!("lua/away.lua"),
    include_str!("lua/put.lua"),
    include_str!("lua/settle.lua"),
    include_str!("lua/feed.lua"),
    include_str!("lua/wake.lua"),
    include_str!("lua/claim.lua"),
    include_str!("lua/acts.lua"),
    include_str!("lua/events.lua"),
    include_str!("lua/campaigns.lua"),
    include_str!("lua/directory.lua"),
    include_str!("lua/queue.lua"),
    include_str!("lua/pauses.lua"),
    include_str!("lua/site.lua"),
    include_str!("lua/lock.lua"),
    include_str!("lua/rename.lua"),
    include_str!("lua/owners.lua"),
    include_str!("lua/letters.lua"),
    include_str!("lua/view.lua"),
    include_str!("lua/client.lua"),
    include_str!("lua/upgrade.lua"),
    include_str!("lua/run.lua"),
];

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::new);

struct Library {
    name: String,
    text: String,
}

/// A function of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// Runs a batch of steps.
    Run,
    /// Runs a batch that changes nothing: it is answered also while the server takes no writes.
    Read,
    /// Tells what its user may not do.
    Lacking,
}

/// Calls a function with the key of its partition; a server that doesn't have the library is given it first.
///
/// A server that gives a slot away has some of its keys, and another server the rest. So two are named to it: one that is
/// there, and the partition's own, which never is. With a part of what was named missing, both servers answer TRYAGAIN until
/// the slot has moved, and nothing runs on half a partition.
pub(super) async fn call<T: FromRedisValue>(
    server: &mut RedisClient,
    function: Function,
    key: &str,
    args: &[&[u8]],
) -> RedisResult<T> {
    let name = &LIBRARY.name;
    let mut call = cmd("FCALL");
    match function {
        Function::Run => call.arg(name),
        Function::Read => call.arg(format!("{name}_reads")),
        Function::Lacking => call.arg(format!("{name}_lacking")),
    };
    call.arg(2).arg(key).arg(format!("{key}:clock")).arg(args);
    match server.query(&call).await {
        Err(error) if is_unknown_function(&error) => {}
        called => return called,
    }
    let _: String = server.query(&LIBRARY.load()).await?;
    server.query(&call).await
}

impl Library {
    fn new() -> Self {
        let source = with_constants(&FILES);
        let hash = Sha1::digest(&source);
        let name = hash.iter().take(8).fold("paced_".to_owned(), |name, byte| format!("{name}{byte:02x}"));
        // What the library is made of is made with its first call, as `redis.call` is out of reach before.
        let text = format!(
            "#!lua name={name}
local function make()
{source}return run
end
local made
local function call(reads)
  return function(keys, args)
    made = made or make()
    return made(keys, args, reads)
  end
end
local function lacking(keys, commands)
  local lacking = {{}}
  for _, command in ipairs(commands) do
    local words = {{}}
    for word in string.gmatch(command, '%S+') do
      words[#words + 1] = word
    end
    if not redis.acl_check_cmd(unpack(words)) then
      lacking[#lacking + 1] = command
    end
  end
  return lacking
end
redis.register_function{{ function_name = '{name}', callback = call(false), flags = {{ 'allow-oom' }} }}
redis.register_function{{ function_name = '{name}_reads', callback = call(true), flags = {{ 'allow-oom', 'no-writes' }} }}
redis.register_function{{ function_name = '{name}_lacking', callback = lacking, flags = {{ 'allow-oom', 'no-writes' }} }}
"
        );
        Self { name, text }
    }

    /// On a cluster it goes to each of the masters.
    fn load(&self) -> Cmd {
        let mut load = cmd("FUNCTION");
        load.arg("LOAD").arg("REPLACE").arg(&self.text);
        load
    }
}

fn is_unknown_function(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("Function not found"))
}

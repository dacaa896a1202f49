//! `paced key`: keys to sign requests with, and what a site of ours publishes of them.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Globals, Trouble, say};
use crate::signature::DIRECTORY;
use crate::site::is_plain_name;

/// Options of `paced key`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced key new crawler                              # a key in the folder of keys
  paced key show crawler > directory.json            # what https://bots.example publishes of it")]
pub(in crate::cli) struct KeyArgs {
    #[command(subcommand)]
    what: KeyAction,
}

#[derive(Clone, Debug, Subcommand)]
enum KeyAction {
    /// Make an Ed25519 key; one that is there is never written over
    #[command(after_help = "Example:\n  paced key new crawler")]
    New {
        /// Its name, as `signature` in site files has it
        #[arg(value_name = "NAME")]
        name: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// The directory to publish: nothing of it is secret. Several keys, to change from one to the next
    #[command(after_help = "Examples:
  paced key show crawler > directory.json
  paced key show crawler-2026 crawler-2027           # both hold while the second takes over")]
    Show {
        /// Names of keys
        #[arg(required = true, value_name = "NAME")]
        names: Vec<String>,
        /// In one line
        #[arg(long)]
        json: bool,
    },
}

/// Makes a key, or shows what to publish of keys.
pub(super) fn run(options: KeyArgs, globals: &Globals) -> Result<Exit, Trouble> {
    match options.what {
        KeyAction::New { name, json } => make(&name, json, globals),
        KeyAction::Show { names, json } => show(&names, json, globals),
    }
}

fn make(name: &str, is_json: bool, globals: &Globals) -> Result<Exit, Trouble> {
    let keys = globals.keys();
    let key = keys.make(checked(name)?).map_err(Trouble::failed)?;
    let (file, thumbprint) = (keys.file(name).display().to_string(), key.thumbprint());
    let mut results = Results::default();
    if is_json {
        results.json(json!({ "key": name, "file": file, "thumbprint": thumbprint }))?;
        return Ok(Exit::Done);
    }
    results.lines([
        format!("{file}: the key {name}, by its thumbprint {thumbprint}"),
        format!("publish `paced key show {name}` at https://YOUR-SITE{DIRECTORY}"),
        format!(
            "then write in site files: signature = {{ key = \"{name}\", agent = \"https://YOUR-SITE\" }}"
        ),
    ])?;
    Ok(Exit::Done)
}

fn show(names: &[String], is_json: bool, globals: &Globals) -> Result<Exit, Trouble> {
    let keys = globals.keys();
    let entry = |name: &String| -> Result<Value, Trouble> {
        let key = keys.get(checked(name)?).map_err(|why| {
            Trouble::failed(format!(
                "{why}; make it with `paced key new {name}`, or name the folder with --keys"
            ))
        })?;
        Ok(key.directory_entry())
    };
    let entries: Vec<Value> = names.iter().map(entry).collect::<Result<_, _>>()?;
    let directory = json!({ "keys": entries });
    let mut results = Results::default();
    if is_json {
        results.json(directory)?;
    } else {
        results.ours(&format!("{directory:#}\n"))?;
        say(format_args!(
            "serve it at https://YOUR-SITE{DIRECTORY}, as application/http-message-signatures-directory+json"
        ));
    }
    Ok(Exit::Done)
}

/// A key's name makes a file's name.
fn checked(name: &str) -> Result<&str, Trouble> {
    let wrong = || format!("`{name}` can't be a key's name; use a-z, A-Z, 0-9, `-`, `_` and `.`");
    is_plain_name(name).then_some(name).ok_or_else(|| Trouble::usage(wrong()))
}

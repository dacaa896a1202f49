//! `paced completions`: what a shell needs to complete verbs and options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Trouble};

/// Options of `paced completions`.
#[derive(Clone, Copy, Debug, Args)]
#[command(after_help = "Examples:
  paced completions bash > ~/.local/share/bash-completion/completions/paced
  paced completions zsh > ~/.zfunc/_paced      # with `fpath+=~/.zfunc` before `compinit`
  paced completions fish > ~/.config/fish/completions/paced.fish")]
pub(in crate::cli) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub(super) fn run(options: CompletionsArgs, mut program: Command) -> Result<Exit, Trouble> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut program, "paced", &mut script);
    Results::default().ours(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}

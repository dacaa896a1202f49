//! `paced man`: the manual, made from the same words as `--help`.

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_mangen::Man;

use crate::cli::parts::results::Results;
use crate::cli::parts::{Exit, Trouble};

/// Options of `paced man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  paced man | man -l -
  paced man --dir ~/.local/share/man/man1     # and then: man paced-crawl")]
pub(in crate::cli) struct ManArgs {
    /// Write a page for the program and one for each verb into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Prints one page with all verbs, or writes one a verb.
pub(super) fn run(options: ManArgs, program: Command) -> Result<Exit, Trouble> {
    let program = pages_of(program);
    let ManArgs { dir: Some(dir) } = options else {
        Results::default().ours(&whole(&program)?)?;
        return Ok(Exit::Done);
    };
    write_all(&program, &dir)
        .map_err(|e| Trouble::failed(format!("--dir {}: {e}; name a folder to write to", dir.display())))?;
    Ok(Exit::Done)
}

/// The program; options that every verb takes are told of once, on its own page.
fn pages_of(program: Command) -> Command {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    program.mut_subcommands(with_own_options)
}

fn with_own_options(verb: Command) -> Command {
    verb.mut_args(|option| if option.is_global_set() { option.hide(true) } else { option })
        .mut_subcommands(with_own_options)
}

/// The verbs below a command, each before those below it.
fn verbs(command: &Command) -> Vec<&Command> {
    command.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verbs(verb))).collect()
}

fn write_all(program: &Command, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    for command in std::iter::once(program).chain(verbs(program)) {
        let man = Man::new(command.clone());
        let page = rendered(|page| man.render(page))?;
        std::fs::write(dir.join(man.get_filename()), page)?;
    }
    Ok(())
}

/// One page: the program's, with a section for each verb.
fn whole(program: &Command) -> io::Result<String> {
    let man = Man::new(program.clone());
    let mut page = rendered(|page| {
        man.render_title(page)?;
        man.render_name_section(page)?;
        usage(&man, page)
    })?;
    for verb in verbs(program) {
        page.push_str(&section(verb)?);
    }
    page.push_str(&rendered(|page| {
        man.render_extra_section(page)?;
        man.render_version_section(page)
    })?);
    Ok(page)
}

/// A verb as a section: what its own page has as sections stands one level lower.
fn section(verb: &Command) -> io::Result<String> {
    let man = Man::new(verb.clone());
    let page = rendered(|page| {
        usage(&man, page)?;
        man.render_extra_section(page)
    })?;
    let lines = page.lines().map(|line| match line.strip_prefix(".SH ") {
        Some(title) => format!(".SS {title}\n"),
        None => format!("{line}\n"),
    });
    let title = verb.get_bin_name().unwrap_or_else(|| verb.get_name()).to_uppercase();
    Ok(format!(".SH \"{title}\"\n{}", lines.collect::<String>()))
}

fn usage(man: &Man, page: &mut Vec<u8>) -> io::Result<()> {
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    man.render_options_section(page)
}

/// What is rendered, as text; examples keep their lines.
fn rendered(render: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> io::Result<String> {
    let mut page = Vec::new();
    render(&mut page)?;
    let page = String::from_utf8_lossy(&page);
    Ok(match page.split_once(".SH EXTRA\n") {
        None => page.into_owned(),
        Some((before, after)) => {
            let (examples, rest) = after.find("\n.SH").map_or((after, ""), |end| after.split_at(end + 1));
            format!("{before}.SH EXAMPLES\n.nf\n{examples}.fi\n{rest}")
        }
    })
}

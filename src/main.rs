//! The `paced` program: everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    paced::cli::main()
}

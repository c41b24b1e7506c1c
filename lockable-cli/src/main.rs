//! `lockable`: looks at locks, asks their holders to stop, and runs programs under them.
//!
//! See "Why does `lockable run` have a watcher process?" in DESIGN.md.

#![forbid(unsafe_code)]
#![cfg_attr(not(unix), expect(dead_code, reason = "what only `run` uses, which needs Unix"))]
#![deny(clippy::print_stdout, clippy::print_stderr, reason = "they panic where no one reads")]

mod arguments;
mod clock;
mod commands;
mod connect;
mod environment;
mod exit;
mod failure;
mod output;
mod process_index;
#[cfg(unix)]
mod run;
#[cfg(not(unix))]
#[path = "no_run.rs"]
mod run;
mod verbose;
mod words;

use std::env;
use std::process::ExitCode;

use crate::arguments::{Answer, Arguments, Verb};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::write_error;

fn main() -> ExitCode {
    run::hear_children();
    let arguments = match arguments::parse(env::args_os()) {
        Ok(arguments) => arguments,
        Err(Answer::Help(error)) => error.exit(),
        Err(Answer::Mistake(failure)) => {
            write_error(&failure.line(env::args_os().any(|word| word == "--json")));
            return ExitCode::from(failure.code());
        }
    };
    let json = arguments.json;
    verbose::begin(json, arguments.verbose);
    arguments.doubts().for_each(|doubt| output::note(json, &doubt));
    let exit = perform(arguments).and_then(|exit| {
        let is_unwritten = output::has_failed() && exit == Exit::Code(0);
        if is_unwritten { Err(Failure::internal("cannot write the output")) } else { Ok(exit) }
    });
    let exit = exit.unwrap_or_else(|failure| {
        write_error(&failure.line(json));
        Exit::Code(failure.code())
    });
    run::leave(exit)
}

/// Everything but what becomes the command waits for something.
fn perform(arguments: Arguments) -> Result<Exit, Failure> {
    let Arguments { connection, json, verb, .. } = arguments;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::internal(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        let code = match verb {
            Verb::Run(arguments) => return run::run(&connection, arguments, json).await,
            Verb::Command(command) => return Err(run::become_command(&command)),
            Verb::Key(arguments) => commands::key(&arguments, json),
            Verb::Completions(arguments) => {
                commands::completions(arguments);
                Ok(0)
            }
            Verb::Man(arguments) => commands::man(arguments.command.as_deref()).map(|()| 0),
            Verb::End(end) => return Ok(run::end(end)),
            Verb::Ls(arguments) => commands::ls(&connection, arguments, json).await,
            Verb::Show(arguments) => commands::show(&connection, arguments, json).await,
            Verb::Release(arguments) => commands::release(&connection, arguments, json).await,
            Verb::Wait(arguments) => commands::wait(&connection, arguments, json).await,
            Verb::Pause(arguments) => {
                commands::pause(&connection, arguments, run::asked_to_end(), json).await
            }
            Verb::Resume(arguments) => commands::resume(&connection, arguments, json).await,
            Verb::Check(arguments) => commands::check(&connection, &arguments, json).await,
            Verb::Watcher(arguments) => run::watch(arguments, json).await,
        };
        code.map(Exit::Code)
    })
}

//! `lockable completions` and `lockable man`: what a package installs beside the program.

use clap_complete::generate;
use clap_mangen::Man;

use crate::arguments::{Completions, visible};
use crate::failure::Failure;
use crate::output::write_bytes;

pub(crate) fn completions(arguments: Completions) {
    let mut text = Vec::new();
    generate(arguments.shell, &mut visible(), "lockable", &mut text);
    write_bytes(&text);
}

/// # Errors
/// When there is no such command.
pub(crate) fn man(name: Option<&str>) -> Result<(), Failure> {
    // There is no page of `help`, to which this one would refer.
    let mut whole = visible().disable_help_subcommand(true);
    whole.build();
    let page = match name {
        None => Some(&whole),
        Some(name) => whole.find_subcommand(name),
    };
    let page = page.ok_or_else(|| {
        let names: Vec<_> = whole.get_subcommands().map(clap::Command::get_name).collect();
        let name = name.unwrap_or_default();
        Failure::usage(format!("there is no command `{name}`; write one of: {}", names.join(", ")))
    })?;
    let mut text = Vec::new();
    let rendered = Man::new(page.clone()).render(&mut text);
    rendered.map_err(|error| Failure::internal(format!("no page: {error}")))?;
    write_bytes(&text);
    Ok(())
}

//! `lockable check`: whether locks can work, before a deployment or while something is wrong.

use lockable_runtime::check::{Report, Severity};

use crate::arguments::{Check, Connection};
use crate::connect;
use crate::failure::{Failure, code};
use crate::output::{escape, json, write_line};
use crate::words;

pub(crate) async fn check(
    connection: &Connection,
    arguments: &Check,
    json: bool,
) -> Result<u8, Failure> {
    // Not connected, so that a server that cannot be reached is in the report too.
    let report = connect::locker(connection)?.check_as(arguments.role.into()).await;
    let report = report.advising(words::advice);
    if json {
        let line = json::line(&report).map_err(|error| Failure::internal(error.to_string()))?;
        write_line(&line);
    } else {
        report.to_string().lines().all(|line| write_line(&escape::printable(line)));
    }
    Ok(exit_code(&report, arguments.strict))
}

fn exit_code(report: &Report, strict: bool) -> u8 {
    let limit = if strict { Severity::Warning } else { Severity::Error };
    if report.worst() >= Some(limit) { code::WRONG } else { 0 }
}

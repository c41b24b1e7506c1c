//! Libraries that are preloaded into a program, and replace functions of libc there.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Whether there can be such libraries here: on Linux, where there is a C compiler, `cc`.
pub(crate) fn is_possible() -> bool {
    let compiler = Command::new("cc").arg("--version").output();
    cfg!(target_os = "linux") && compiler.is_ok_and(|output| output.status.success())
}

/// Makes the library of a source in C.
pub(crate) fn compile(source: &str, library: &Path) {
    let file = library.with_extension("c");
    fs::write(&file, source).expect("a file can be written");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(library).arg(file);
    let output = compiler.output().expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

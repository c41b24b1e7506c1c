//! Programs that show `lockable-runtime` at work; see the README beside this folder.

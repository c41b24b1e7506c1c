//! Services that lock: with a web framework, with a database; see the README in the folder above.

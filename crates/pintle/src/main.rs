//! The `pintle` command: flags, options, config, and the server chain.

fn main() {}

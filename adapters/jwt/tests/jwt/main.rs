//! What is believed, what is not, and where the keys come from.

mod arbitrary;
mod attacks;
mod claims;
mod keys_at_address;
mod keys_in_file;
mod support;

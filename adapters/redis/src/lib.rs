//! Lanes and counters on Redis or Valkey, shared by any number of processes.

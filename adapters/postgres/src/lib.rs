//! The Store on PostgreSQL, for any number of processes.

//! The binary as its users run it: real processes, real sockets, a real data folder.

mod access;
mod backup;
mod chaos;
mod children;
mod clocks;
mod cluster;
mod crash;
mod dags;
mod damage;
mod descriptors;
mod disk;
mod folder;
mod governance;
mod harness;
mod logs;
mod losses;
mod outage;
mod pools;
mod quotas;
mod restart;
mod rollbacks;
mod sagas;
mod schedules;
mod tour;
mod traces;
mod workers;

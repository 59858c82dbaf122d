//! The control plane is away for longer and longer while workers go on: no false reaps, and no worse ends for longer outages.

use std::time::Duration;

use lockgate_sim::{Ends, Outage, OutageKind};

fn outage(away: OutageKind, processes: u64, seconds: u64) {
    for seed in 0..4 {
        let outage = Outage { seed, away, processes, down: Duration::from_secs(seconds) };
        let ends = outage.tell().unwrap_or_else(|violation| panic!("{outage:?}: {violation}"));
        let Ends { jobs, ended_unheard, .. } = ends;
        assert!(ended_unheard > 0, "nothing ended meanwhile, so nothing was shown: {outage:?}");
        // Independent of the outage's length: every job succeeds once, by the attempt that was running.
        assert_eq!(ends, Ends { jobs, succeeded: jobs, reaped: 0, repeated: 0, ended_unheard }, "{outage:?}");
    }
}

macro_rules! outages {
    ($($name:ident = $processes:literal for $seconds:literal;)*) => {
        $(
            #[test]
            fn $name() {
                outage(OutageKind::Processes, $processes, $seconds);
            }
        )*
    };
}

outages! {
    one_process_away_for_30_s_reaps_nobody = 1 for 30;
    one_process_away_for_90_s_reaps_nobody = 1 for 90;
    one_process_away_for_240_s_reaps_nobody = 1 for 240;
    one_process_away_for_400_s_reaps_nobody = 1 for 400;
    one_process_away_for_700_s_reaps_nobody = 1 for 700;
    two_processes_away_for_30_s_reap_nobody = 2 for 30;
    two_processes_away_for_90_s_reap_nobody = 2 for 90;
    two_processes_away_for_240_s_reap_nobody = 2 for 240;
    three_processes_away_for_400_s_reap_nobody = 3 for 400;
    three_processes_away_for_700_s_reap_nobody = 3 for 700;
}

#[test]
fn a_store_that_is_away_for_long_reaps_nobody() {
    for (processes, seconds) in [(1, 30), (2, 90), (1, 240), (3, 400), (2, 700)] {
        outage(OutageKind::Store, processes, seconds);
    }
}

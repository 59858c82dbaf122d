//! The steps of runs in a group of calls, and the waves in which they are written.

use std::collections::HashMap;

use super::plan::Item;
use crate::encoded_run_step::EncodedRunStep;

pub(super) struct PlannedStep<'a> {
    /// The call that the step belongs to.
    pub(super) call: usize,
    pub(super) sheet: &'a EncodedRunStep,
    /// The births of its jobs. They need free ids and the policy in force, which are checked together with the heads; they
    /// have no other evidence.
    pub(super) births: Vec<Item<'a>>,
}

/// Steps of one wave share no run, no key and no job, so statements over the whole wave can write it.
#[derive(Default)]
pub(super) struct RunPlan<'a> {
    pub(super) steps: Vec<PlannedStep<'a>>,
    /// Positions of steps.
    pub(super) waves: Vec<Vec<usize>>,
}

#[derive(PartialEq, Eq, Hash)]
enum RunWaveKey<'a> {
    Run(&'a str),
    Key(&'a str, &'a str),
    Job(&'a str),
}

fn claims(sheet: &EncodedRunStep) -> impl Iterator<Item = RunWaveKey<'_>> {
    let key = sheet.key().map(|(tenant, key)| RunWaveKey::Key(tenant, key));
    let jobs = sheet.jobs.iter().map(|job| RunWaveKey::Job(job.id().as_str()));
    [RunWaveKey::Run(sheet.id())].into_iter().chain(key).chain(jobs)
}

impl<'a> RunPlan<'a> {
    pub(super) fn of(calls: impl Iterator<Item = &'a [EncodedRunStep]>) -> Self {
        let mut plan = Self::default();
        // The first wave without the key. Looked up and never iterated, so the order of the map does not matter.
        let mut free: HashMap<RunWaveKey<'a>, usize> = HashMap::new();
        for (call, sheets) in calls.enumerate() {
            // Runs and jobs are numbered wave by wave, so the steps of one call never go back to an earlier wave.
            let mut from = 0;
            for sheet in sheets {
                let wave = claims(sheet).filter_map(|claim| free.get(&claim).copied()).fold(from, usize::max);
                from = wave;
                free.extend(claims(sheet).map(|claim| (claim, wave + 1)));
                if plan.waves.len() <= wave {
                    plan.waves.resize_with(wave + 1, Vec::new);
                }
                plan.waves[wave].push(plan.steps.len());
                let births = sheet.jobs.iter().map(|sheet| Item { call, sheet, proof: 0 }).collect();
                plan.steps.push(PlannedStep { call, sheet, births });
            }
        }
        plan
    }
}

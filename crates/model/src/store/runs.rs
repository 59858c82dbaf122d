//! DAGs, steps of runs, and messages to runs.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::ids::{JobSeq, RunId, TenantId};
use lockgate_core::job::{Job, Transition};
use lockgate_core::request::RequestHash;
use lockgate_core::time::Timestamp;

use super::data::{Data, NewsSource, REFUSED, RunRow, TakenKey, UnheardNews};
use lockgate_ports::store::{DagRow, KEY_LIFE, NewDag, RunChange, RunRefusal};

impl Data {
    pub(super) fn put_dag(&mut self, dag: NewDag, now: Timestamp) -> DagRow {
        let NewDag { tenant, name, snapshot, text, actor, pins, audit } = dag;
        let versions = self.dags.entry((tenant.clone(), name.clone())).or_default();
        if let Some(latest) = versions.last().filter(|latest| latest.text == text) {
            return latest.clone();
        }
        let version = versions.last().map_or(1, |latest| latest.version + 1);
        let row = DagRow { tenant, name, version, snapshot, text, actor, at: now, pins };
        versions.push(row.clone());
        self.keep_audit(vec![audit]);
        row
    }

    /// checks a step as a whole before anything of it is written.
    pub(super) fn advance(&mut self, change: RunChange, now: Timestamp) -> Result<Vec<JobSeq>, RunRefusal> {
        self.admits(&change, now)?;
        let is_refused = |birth: &Transition| self.refused.contains(&birth.job.request.job_id);
        if self.refused_runs.contains(&change.head.id) || change.jobs.iter().any(is_refused) {
            self.refusals += 1;
            return Err(RunRefusal::Refused(REFUSED.to_owned()));
        }
        let RunChange { head, nodes, jobs, heard, key, audit, outbox } = change;
        let (id, version) = (head.id.clone(), head.version);
        if let Some(key) = key.filter(|_| version == 1) {
            let taken = TakenKey { run: id.clone(), hash: key.hash, free_at: now + KEY_LIFE };
            self.run_keys.insert((head.tenant.clone(), key.key), taken);
        }
        let ended_at = head.state.is_over().then(|| head.ended_at.unwrap_or(now));
        let parent = head.parent.clone().filter(|_| head.state.is_over());
        if version == 1 {
            self.last_run += 1;
            self.tenants.insert(head.tenant.clone());
        }
        let no = self.last_run;
        let fresh = || RunRow { no, head: head.clone(), nodes: BTreeMap::new(), ended_at };
        let row = self.runs.entry(id.clone()).or_insert_with(fresh);
        row.nodes.extend(nodes.into_iter().map(|(key, node)| (key, (version, node))));
        (row.head, row.ended_at) = (head, ended_at);
        for no in heard {
            if self.news.get(&no).is_some_and(|news| news.run == id) {
                self.news.remove(&no);
            }
        }
        self.keep_audit(audit);
        let jobs = self.commit(RunChange::births(jobs, outbox), now);
        if let Some(parent) = parent {
            self.tell(parent.run, NewsSource::Run(id), now);
        }
        jobs.into_iter().map(|job| job.map_err(|_| RunRefusal::Conflict)).collect()
    }

    pub(super) fn run_of_key(&self, tenant: &TenantId, key: &str, now: Timestamp) -> Option<(RunId, RequestHash)> {
        let owner = self.run_keys.get(&(tenant.clone(), key.into()));
        owner.filter(|owner| owner.free_at > now).map(|owner| (owner.run.clone(), owner.hash))
    }

    fn admits(&self, change: &RunChange, now: Timestamp) -> Result<(), RunRefusal> {
        let head = &change.head;
        let key = change.key.as_ref().filter(|_| head.version == 1);
        if let Some((run, hash)) = key.and_then(|key| self.run_of_key(&head.tenant, &key.key, now)) {
            return Err(RunRefusal::Taken { run, hash });
        }
        let current = self.runs.get(&head.id).map_or(0, |row| row.head.version);
        let mut ids = BTreeSet::new();
        let mut is_free = |job: &Job| ids.insert(job.request.job_id.clone()) && self.in_the_way(&job.request, now).is_none();
        let proven = change.jobs.iter().all(|birth| self.proves(&birth.evidence, now));
        if current + 1 != head.version || !proven || !change.jobs.iter().all(|birth| is_free(&birth.job)) {
            return Err(RunRefusal::Conflict);
        }
        Ok(())
    }

    ///
    pub(super) fn tell(&mut self, run: RunId, of: NewsSource, at: Timestamp) {
        self.last_news += 1;
        self.news.insert(self.last_news, UnheardNews { run, of, at });
    }

    pub(super) fn is_live(&self, run: &RunId) -> bool {
        self.runs.get(run).is_some_and(|row| !row.head.state.is_over())
    }

    /// A sub-run stays until its parent run is over.
    pub(super) fn run_may_go(&self, row: &RunRow) -> bool {
        row.head.parent.as_ref().is_none_or(|parent| !self.is_live(&parent.run))
    }

    /// Whole runs, until they and their nodes are `limit` rows or more.
    pub(super) fn prune_runs(&mut self, before: Timestamp, limit: usize, now: Timestamp) -> u64 {
        let ended = self.runs.iter().filter(|(_, row)| self.run_may_go(row));
        let ended = ended.filter_map(|(id, row)| Some((row.ended_at?, id, row.nodes.len())));
        let mut old: Vec<(Timestamp, &RunId, usize)> = ended.filter(|(at, ..)| *at < before).collect();
        old.sort_unstable();
        let mut rows = 0;
        let fits = |(_, id, nodes): (Timestamp, &RunId, usize)| {
            let fits = rows < limit;
            rows += 1 + nodes;
            fits.then(|| id.clone())
        };
        let gone: BTreeSet<RunId> = old.into_iter().map_while(fits).collect();
        self.runs.retain(|id, _| !gone.contains(id));
        self.run_keys.retain(|_, key| key.free_at > now && !gone.contains(&key.run));
        // News of a run that is not there: told late by its last jobs.
        let runs = &self.runs;
        self.news.retain(|_, news| runs.contains_key(&news.run) || (news.at >= before && !gone.contains(&news.run)));
        gone.len() as u64
    }

    pub(super) fn dag(&self, tenant: &TenantId, name: &str, version: Option<u32>) -> Option<DagRow> {
        let versions = self.dags.get(&(tenant.clone(), name.into()))?;
        let wanted = |row: &&DagRow| version.is_none_or(|version| row.version == version);
        versions.iter().rev().find(wanted).cloned()
    }

    pub(super) fn dags(&self, tenant: &TenantId, after: Option<&str>, limit: usize) -> Vec<DagRow> {
        let of_tenant =
            self.dags.iter().filter(|((owner, name), _)| owner == tenant && after.is_none_or(|after| **name > *after));
        of_tenant.filter_map(|(_, versions)| versions.last()).take(limit).cloned().collect()
    }
}

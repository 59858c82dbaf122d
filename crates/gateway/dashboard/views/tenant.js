// What Overview and Workers show to a credential of one tenant: that tenant's own. Pools, queues and workers serve all tenants,
// and are for credentials of every tenant.

import { get } from "../api.js";
import { ago, badge, card, count, h, jobLink, link, row, table } from "../dom.js";

const ROWS = 8;
const AT_WORK = ["RUNNING", "DISPATCHED"];

const listed = async (state) => (await get(`/v1/jobs?state=${state}&limit=${ROWS}`)).jobs;

const figure = (number, what, href) =>
  h("a", { class: "figure", href }, h("b", {}, number.toLocaleString("en")), h("span", {}, what));

const ofTotal = (number, limit, what) => (limit === undefined ? what : `${what}, of ${limit.toLocaleString("en")} allowed`);

const onlyOwn = (tenant) =>
  h("p", { class: "quiet" }, `This credential is for tenant ${tenant}. Pools, queues and workers of the installation are shown to credentials of every tenant.`);

// Open to everyone, and a server that is not ready says why.
async function readiness() {
  try {
    const { status, code, detail } = await get("/readyz");
    return h("p", { class: "quiet" }, badge(status), code ? ` ${code}: ${detail}` : "");
  } catch (error) {
    return h("p", { class: "notice bad" }, error.message);
  }
}

export async function overviewOf(tenant) {
  const [{ tenants }, { approvals }, letters, waiting, ready] = await Promise.all(
    [get("/v1/tenants"), get("/v1/approvals"), get("/v1/dead-letters?limit=100"), listed("SCHEDULED"), readiness()]);
  const has = tenants.find(({ name }) => name === tenant) ?? { jobs: 0, ended: 0, runs: 0, quota: {} };
  const dead = letters.dead_letters.length;
  const jobRow = (job) => row([jobLink(job.job_id), job.topic, job.priority, ago(job.submitted_at)]);
  return [
    h("div", { class: "figures" },
      figure(has.jobs, ofTotal(has.jobs, has.quota.jobs, "live"), "#/jobs"), figure(has.ended, "ended", "#/jobs"),
      figure(has.runs, ofTotal(has.runs, has.quota.runs, "workflows under way"), "#/runs"),
      figure(dead, letters.next_cursor ? "dead letters, and more" : "dead letters", "#/dead-letters")),
    approvals.length > 0 &&
      h("p", { class: "notice asks" }, link("#/approvals", count(approvals.length, "job")), " cannot go on without an approval."),
    card("What waits", table(["job", "topic", "priority", "submitted"], waiting.map(jobRow), "Nothing waits.")),
    ready, onlyOwn(tenant),
  ].filter(Boolean);
}

export async function workersOf(tenant) {
  const jobs = (await Promise.all(AT_WORK.map(listed))).flat();
  // Lists do not say who works on a job.
  const held = await Promise.all(jobs.map(({ job_id }) => get(`/v1/jobs/${encodeURIComponent(job_id)}`)));
  const jobRow = (job) => {
    const attempt = (job.attempts ?? []).at(-1);
    return row([attempt?.worker_id ?? "–", jobLink(job.job_id), badge(job.state), job.topic, attempt?.no ?? "–", ago(attempt?.started_at ?? attempt?.dispatched_at)]);
  };
  return [
    card(`At work for ${tenant}`, table(["worker", "job", "state", "topic", "attempt", "began"], held.map(jobRow), "Nothing is at work.")),
    onlyOwn(tenant),
  ];
}

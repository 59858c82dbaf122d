// Jobs that wait for a person.

import { get, post } from "../api.js";
import { ago, button, code, count, h, jobLink, toast } from "../dom.js";
import { consent, hiddenPayload } from "./consent.js";

export default function approvals({ refresh }) {
  // The vote names what was looked at: if the job or its rule is another by now, it does not count.
  const ticked = new Set();
  const answer = async (path, { job_id, request_hash, rule_hash }, word, more = {}) => {
    await post(path, { request_hash, rule_hash, ...more });
    toast(`${job_id} is ${word}`);
    refresh();
  };
  const approve = (asked, more) => answer(`/v1/jobs/${encodeURIComponent(asked.job_id)}/approve`, asked, "approved", more);
  const reject = (asked) => answer(`/v1/jobs/${encodeURIComponent(asked.job_id)}/reject`, asked, "rejected");

  const one = (asked) => h("section", { class: "card" },
    h("div", { class: "head" }, h("h2", {}, jobLink(asked.job_id)), h("span", { class: "actions" },
      consent(asked, ticked, (more) => approve(asked, more)), button("Reject", () => reject(asked), "danger"))),
    h("p", { class: "lead" }, asked.reason),
    h("p", { class: "quiet" }, `${asked.topic} by ${asked.submitter}, asked by rule ${asked.rule} `, ago(asked.asked_at),
      `; ${asked.approved_by.length} of ${count(asked.approvers_needed, "vote")}`,
      asked.expires_at ? [", expires ", ago(asked.expires_at)] : ""),
    asked.payload_hidden ? hiddenPayload() : code(asked.payload ?? null));

  async function body() {
    const { approvals } = await get("/v1/approvals");
    return approvals.length > 0 ? approvals.map(one) : h("p", { class: "quiet" }, "Nobody waits for an answer.");
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Approvals")), body };
}

// Who decided what, and whether the trail is whole.

import { get } from "../api.js";
import { ago, button, h, row, table, toast } from "../dom.js";

const PAGE = 100;

export default function audit({ refresh }) {
  let after = 0;

  async function verify() {
    const found = await get("/v1/audit/verify");
    toast(found.broken ? `Broken: ${JSON.stringify(found.broken)}` : "The trail is whole: nobody touched it.", found.broken ? "bad" : "good");
  }

  const auditRow = (entry) => row([
    entry.id, ago(entry.at), entry.tenant, entry.actor, entry.action.replaceAll("_", " "), h("span", { class: "mono clip" }, entry.subject ?? ""),
    h("details", {}, h("summary", {}, "detail"), h("pre", {}, JSON.stringify(entry.detail ?? {}, null, 2))),
  ]);

  async function body() {
    const page = await get(`/v1/audit?${new URLSearchParams({ after, limit: PAGE })}`);
    const turn = (to) => () => { after = to; refresh(); };
    return [
      table(["", "when", "tenant", "actor", "action", "subject", ""], page.rows.map(auditRow), "Nothing was decided after this."),
      h("div", { class: "actions" }, after > 0 && button("First", turn(0)), page.rows.length === PAGE && button("Next", turn(page.next_after))),
    ];
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Audit"), button("Verify", verify, "primary")), body, every: 0 };
}

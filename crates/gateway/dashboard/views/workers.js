// Who works, and in which pool.

import { get, post } from "../api.js";
import { ago, badge, bar, button, card, h, row, table, toast } from "../dom.js";
import { workersOf } from "./tenant.js";

export default function workers({ refresh }) {
  const told = async (text, sent) => { await sent; toast(text); refresh(); };
  const percent = (load) => (load === undefined ? "–" : `${load}%`);

  const workerRow = (worker) => row([
    worker.worker_id, badge(worker.status), worker.pool, bar(worker.busy, worker.slots), `${worker.busy} of ${worker.slots}`,
    percent(worker.cpu_load), percent(worker.memory_load), ago(worker.last_beat_at),
    h("span", { class: "clip" }, worker.capabilities.join(" ") || "–"),
    h("span", { class: "clip" }, worker.topics.join(" ")),
    worker.status === "attached" &&
      button("Drain", () => told("It finishes what it has", post(`/v1/workers/${encodeURIComponent(worker.worker_id)}/drain`))),
  ]);
  const poolRow = (pool) => {
    const path = `/v1/pools/${encodeURIComponent(pool.name)}`;
    return row([
      h("b", {}, pool.name), badge(pool.state), pool.dispatch, pool.workers, bar(pool.busy, pool.slots), `${pool.busy} of ${pool.slots}`,
      pool.waiting, h("span", { class: "clip" }, pool.topics.join(" ")),
      pool.state === "open" ? button("Pause", () => told("Paused: work waits", post(`${path}/pause`)))
        : button("Resume", () => told("Resumed", post(`${path}/resume`))),
    ]);
  };

  let me = null;

  async function body() {
    me ??= await get("/v1/whoami");
    return me.grant?.tenant ? workersOf(me.grant.tenant) : ofAll();
  }

  async function ofAll() {
    const [{ workers }, { pools }] = await Promise.all([get("/v1/workers"), get("/v1/pools")]);
    return [
      card("Workers", table(["worker", "status", "pool", "", "busy", "cpu", "memory", "last beat", "capabilities", "topics", ""],
        workers.map(workerRow), "Nobody is attached. Start one with: lockgate worker")),
      card("Pools", table(["pool", "state", "dispatch", "workers", "", "busy", "waiting", "topics", ""], pools.map(poolRow), "There are none.")),
    ];
  }

  return { head: h("div", { class: "head" }, h("h1", {}, "Workers")), body };
}

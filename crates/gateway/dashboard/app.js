// The frame around the pages: which one is shown, when it is looked at again, and who looks.

import { Refused, credential, get, tenant } from "./api.js";
import { button, h, toast } from "./dom.js";
import approvals from "./views/approvals.js";
import audit from "./views/audit.js";
import job from "./views/job.js";
import jobs from "./views/jobs.js";
import letters from "./views/letters.js";
import overview from "./views/overview.js";
import run from "./views/run.js";
import runs from "./views/runs.js";
import schedules from "./views/schedules.js";
import workers from "./views/workers.js";

const PAGES = [
  ["", "Overview", overview],
  ["jobs", "Jobs", jobs],
  ["runs", "Workflows", runs],
  ["schedules", "Schedules", schedules],
  ["approvals", "Approvals", approvals],
  ["dead-letters", "Dead letters", letters],
  ["workers", "Workers", workers],
  ["audit", "Audit", audit],
];
const DETAILS = { jobs: job, runs: run };
const EVERY_MS = 2000;

const main = document.getElementById("main");
let shown = new AbortController();

// A page is { head, body, every }: the head stays, the body is made anew. It may follow streams until its signal fires.
async function open() {
  shown.abort();
  shown = new AbortController();
  const { signal } = shown;
  const [name, id] = location.hash.replace(/^#\/?/, "").split("?")[0].split("/").map(decodeURIComponent);
  for (const item of document.querySelectorAll("nav a")) item.classList.toggle("here", item.dataset.name === name);
  const page = id ? DETAILS[name] : PAGES.find(([path]) => path === name)?.[2];
  if (!page) return main.replaceChildren(h("p", { class: "quiet" }, "There is nothing here."));
  const view = page({ id, signal, refresh: () => refresh() });
  const body = h("div", { class: "body" }, h("p", { class: "quiet" }, "One moment…"));
  main.replaceChildren(...[view.head, body].filter(Boolean));

  async function refresh() {
    try {
      const made = await view.body();
      if (!signal.aborted && made) body.replaceChildren(...[made].flat());
    } catch (error) {
      if (!signal.aborted) failed(error, body);
    }
  }
  await refresh();
  while (!signal.aborted && view.every !== 0) {
    await new Promise((resolve) => setTimeout(resolve, view.every ?? EVERY_MS));
    if (!signal.aborted && !document.hidden) await refresh();
  }
}

function failed(error, body) {
  if (error instanceof Refused && error.status === 401) return signIn(error);
  const text = error instanceof Refused ? error.message : "The server does not answer. Asking again.";
  body.replaceChildren(h("p", { class: "notice bad" }, text));
}

function signIn(error) {
  shown.abort();
  const key = h("input", { type: "password", placeholder: "lgk_… or a token", autocomplete: "off", required: true });
  const enter = (event) => {
    event.preventDefault();
    credential.set(key.value.trim());
    start();
  };
  const hint = credential.get() ? error.message : "It stays in this tab and is forgotten with it.";
  main.replaceChildren(h("form", { class: "card sign-in", onsubmit: enter },
    h("h2", {}, "Who are you?"),
    h("p", {}, "This server asks for a credential: an API key, or a token of your issuer."),
    key, h("button", { class: "primary" }, "Enter"), h("p", { class: "quiet" }, hint)));
  key.focus();
}

async function who() {
  const box = document.getElementById("who");
  try {
    const me = await get("/v1/whoami");
    const other = h("input", { value: tenant.get() ?? me.tenant, size: 12, title: "Tenant", "aria-label": "Tenant", onchange: () => {
      tenant.set(other.value.trim());
      toast(`Looking at tenant ${other.value.trim() || "of the credential"}`);
      open();
    } });
    const leave = credential.get() && button("Leave", () => { credential.set(null); tenant.set(null); location.reload(); });
    box.replaceChildren(h("span", { class: "quiet" }, me.actor, " in"), other, ...[leave].filter(Boolean));
  } catch {
    box.replaceChildren();
  }
}

function start() {
  document.getElementById("nav").replaceChildren(
    ...PAGES.map(([path, title]) => h("a", { href: `#/${path}`, "data-name": path }, title)));
  who();
  open();
}

window.addEventListener("hashchange", open);
start();

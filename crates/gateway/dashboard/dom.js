// Small pieces of pages. Text is only ever set as text, so nothing that a job says can become markup.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

function drawn(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Rows of a table; an empty one says what its emptiness means.
export function table(columns, rows, empty) {
  if (rows.length === 0) return h("p", { class: "quiet" }, empty);
  const head = columns.map((name) => h("th", {}, name));
  return h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows)));
}

export function row(cells, href) {
  const open = href && ((event) => { if (!event.target.closest("a, button, input")) location.hash = href; });
  return h("tr", href ? { class: "link", onclick: open } : {}, cells.map((cell) => h("td", {}, cell)));
}

export const card = (title, ...children) => h("section", { class: "card" }, h("h2", {}, title), children);

export const facts = (pairs) =>
  h("dl", {}, pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));

export const link = (href, text) => h("a", { href }, text);
export const jobLink = (id) => h("a", { href: `#/jobs/${encodeURIComponent(id)}`, class: "mono" }, id);
export const runLink = (id) => h("a", { href: `#/runs/${encodeURIComponent(id)}`, class: "mono" }, id);
export const code = (value) => h("pre", {}, typeof value === "string" ? value : JSON.stringify(value, null, 2));

const TONES = {
  SUCCEEDED: "good", COMPENSATED: "good", DONE: "good", ready: "good", closed: "good", open: "good", attached: "good", STARTED: "good",
  RUNNING: "busy", DISPATCHED: "busy", COMPENSATING: "busy",
  PENDING: "waiting", SCHEDULED: "waiting", APPROVAL_REQUIRED: "asks", PAUSED: "waiting", READY: "waiting", DUE: "waiting", degraded: "asks",
  paused: "waiting", draining: "waiting", SUCCEEDED_WITH_FAILURES: "asks", SKIPPED: "quiet", CANCELLED: "quiet", CANCELED: "quiet",
};

export const badge = (state) => h("span", { class: `badge ${TONES[state] ?? "bad"}` }, state);

export function bar(part, whole) {
  const share = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  const filled = drawn("rect", { width: `${share}%`, height: "100%", rx: 3, class: "filled" });
  return h("span", { class: "bar", title: `${part} of ${whole}` },
    drawn("svg", { width: "100%", height: 8 }, drawn("rect", { width: "100%", height: "100%", rx: 3, class: "whole" }), filled));
}

// The last values of something, the newest on the right.
export function spark(values) {
  const [width, height, top] = [160, 36, Math.max(1, ...values)];
  const at = (value, i) => `${(i * width) / Math.max(1, values.length - 1)},${height - 2 - (value * (height - 4)) / top}`;
  return drawn("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none" },
    drawn("polyline", { points: values.map(at).join(" "), fill: "none" }));
}

export function ago(text) {
  if (!text) return "–";
  const seconds = Math.round((Date.now() - Date.parse(text)) / 1000);
  const said = span(Math.abs(seconds));
  return h("time", { datetime: text, title: text }, Math.abs(seconds) < 1 ? "now" : seconds > 0 ? `${said} ago` : `in ${said}`);
}

export function span(seconds) {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]]) {
    if (seconds >= size) return `${Math.floor(seconds / size)}${unit}`;
  }
  return `${Math.round(seconds)}s`;
}

export function took(from, to) {
  if (!from) return "–";
  const millis = (to ? Date.parse(to) : Date.now()) - Date.parse(from);
  return millis < 1000 ? `${Math.max(0, millis)}ms` : millis < 60000 ? `${(millis / 1000).toFixed(1)}s` : span(millis / 1000);
}

export const count = (number, what) => `${number.toLocaleString("en")} ${what}${number === 1 ? "" : "s"}`;

export function button(text, act, kind = "") {
  return h("button", { type: "button", class: kind, onclick: async (event) => {
    const pressed = event.currentTarget;
    pressed.disabled = true;
    try { await act(); } catch (error) { toast(error.message, "bad"); } finally { pressed.disabled = false; }
  } }, text);
}

export function toast(text, tone = "good") {
  const shown = h("div", { class: `toast ${tone}` }, text);
  document.getElementById("toasts").append(shown);
  setTimeout(() => shown.remove(), 6000);
}

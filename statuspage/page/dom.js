// Everything that comes from outside becomes a text node here; nothing is parsed as markup.

/** el makes an element. Attributes are set as text; children are elements or text. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** svg makes an element of a drawing. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill(e, attributes, children) {
  for (const [k, v] of Object.entries(attributes)) {
    if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : upright(v));
  }
  e.append(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false).map((c) => (c instanceof Node ? c : upright(c))));
  return e;
}

/** upright is text that turns nobody's direction of writing: a model's name could spell "closed" backwards. */
const upright = (text) => String(text).replace(/\p{Bidi_Control}/gu, "\ufffd");

export const $ = (id) => document.getElementById(id);

/** table fills a table; columns are [heading, cell(row)] pairs. */
export function table(into, columns, rows) {
  into.replaceChildren(
    el("thead", {}, el("tr", {}, columns.map(([h]) => el("th", { scope: "col" }, h)))),
    el("tbody", {}, rows.map((r) => el("tr", {}, columns.map(([h, cell]) => el("td", { "data-label": h }, el("div", {}, cell(r))))))),
  );
  into.hidden = rows.length === 0;
}

/** span of milliseconds, for people. */
export function lasting(ms) {
  if (ms < 0) ms = 0;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 90) return `${Math.round(s)} s`;
  if (s < 5400) return `${Math.round(s / 60)} min`;
  if (s < 36 * 3600) return `${Math.round(s / 3600)} h`;
  return `${Math.round(s / 86400)} d`;
}

export const count = (n) => (n ?? 0).toLocaleString("en");
export const clock = (iso) => new Date(iso).toLocaleTimeString("en-GB");
export const words = (token) => String(token ?? "").replaceAll("_", " ");
export const chip = (text, kind) => el("span", { class: `chip ${kind ?? ""}` }, text);

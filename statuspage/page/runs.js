import { $, el, table, chip, words, clock, count } from "./dom.js";
import { get, Denied } from "./api.js";
import { row } from "./feed.js";

let shown = "";

/** runs shows the list, or one run and its recoveries; it is built anew only when something changed. */
export async function runs(key, recoveries) {
  const path = key ? `/api/runs/${encodeURIComponent(key)}` : "/api/runs";
  let got;
  try {
    got = await get(path);
  } catch (e) {
    if (e instanceof Denied) throw e;
    got = { failed: String(e.message) };
  }
  const its = recoveries.filter((r) => got.run && r.run === got.run.id).reverse();
  const text = path + JSON.stringify([got, its]);
  if (text === shown) return;
  shown = text;
  const into = $("runs");
  if (got.failed) into.replaceChildren(back(), el("p", { class: "bad" }, got.failed));
  else into.replaceChildren(...(key ? one(got, its) : list(got.runs)));
}

const back = () => el("p", {}, el("a", { href: "#runs" }, "← all runs"));

function list(all) {
  const t = el("table");
  table(t, [
    ["Run", (r) => el("a", { href: `#run=${r.key}` }, r.id)],
    ["State", (r) => [chip(words(r.state), tone(r.state)), r.open ? [" ", chip("batch open", "warn")] : undefined]],
    ["Steps", (r) => count(r.count)],
    ["Model", (r) => r.model ?? ""],
    ["Last written", (r) => clock(r.updated)],
    ["Doubt", (r) => r.doubt ?? ""],
  ], all);
  return [el("h2", {}, "Runs ", el("small", {}, "the last ones written")), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Runs" }, t),
    el("p", { class: "none", hidden: all.length > 0 }, "No run is known. A run is kept when a model asks for tools, or when its client names it.")];
}

const tone = (s) => ({ running: "good", awaiting: "warn", ended: "" })[s] ?? "";

function one(a, its) {
  const r = a.run;
  if (!r) return [back(), el("p", {}, a.reason)];
  return [back(),
    el("h2", {}, "Run ", el("code", {}, r.id)),
    el("div", { class: "advice" }, el("h3", {}, "If its process died now: ", chip(words(a.advice), "key")), el("p", {}, words(a.reason)),
      a.claim ? el("p", {}, "It has to be claimed first.") : undefined),
    el("dl", {}, facts(r).flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    its.length ? el("section", {}, el("h3", {}, "Its recoveries"), el("ol", { class: "feed" }, its.map(row))) : undefined,
    ...(r.flags ?? []).map((f) => el("p", { class: "warn" }, f)),
    r.dropped ? el("p", { class: "none" }, `${count(r.dropped)} older steps are no longer kept in detail.`) : undefined,
    ...(r.steps ?? []).slice().reverse().map((s) => step(s, a)),
  ].filter(Boolean);
}

function facts(r) {
  return [["State", words(r.state) + (r.cause && r.cause !== "none" ? ` (${words(r.cause)})` : "")], ["Model", r.model], ["Dialect", r.dialect], ["Thread", r.thread], ["Parent", r.parent],
    ["Began", new Date(r.began).toLocaleString("en-GB")], ["Last written", new Date(r.updated).toLocaleString("en-GB")],
    ["Announces attempts", r.reports ? "yes" : "no"], ["Held by", r.holder], ["Doubt", r.doubt],
    ["Waits for", (r.tickets ?? []).map((t) => `${t.kind} ${t.id}`).join(", ")]].filter(([, v]) => v);
}

function step(s, a) {
  const what = s.n === a.step ? new Map((a.calls ?? []).map((c) => [c.op, c])) : new Map();
  const t = el("table");
  table(t, [
    ["Call", (c) => [el("b", {}, c.name), " ", el("code", {}, c.id)]],
    ["State", (c) => [chip(words(c.state)), c.why ? ` ${words(c.why)}` : ""]],
    ["Policy", (c) => words(c.policy)],
    ["Attempts", (c) => count(c.attempts)],
    ["Recovery would", (c) => (what.has(c.op) ? [chip(words(what.get(c.op).advice), "key"), " ", words(what.get(c.op).reason)] : "")],
    ["Result", (c) => result(c.result)],
  ], s.calls ?? []);
  return el("section", { class: "step" },
    el("h3", {}, `Step ${s.n} `, el("small", {}, `${clock(s.at)} · ${s.model ?? ""} · ${words(s.finish)}`), " ", s.calls?.length ? chip(s.finalized ? "batch final" : "batch open", s.finalized ? "good" : "warn") : undefined),
    s.calls?.length ? el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Calls of step ${s.n}` }, t) : el("p", { class: "none" }, "No calls."));
}

function result(r) {
  if (!r) return "";
  if (!r.content) return el("code", { title: r.digest }, r.digest.slice(0, 12));
  const text = new TextDecoder().decode(Uint8Array.from(atob(r.content), (c) => c.charCodeAt(0)));
  return el("pre", { class: r.error ? "bad" : "" }, text.length > 2000 ? text.slice(0, 2000) + "…" : text);
}

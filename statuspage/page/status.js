import { $, el, table, lasting, count, clock, words, chip } from "./dom.js";
import { chart, add, most } from "./chart.js";
import { get, keepToken, Denied } from "./api.js";
import { row } from "./feed.js";
import { config } from "./config.js";
import { runs } from "./runs.js";

const often = 1000, seldom = 15000; // ms between questions, when all is well and at most
const keptFeed = 200;

let epoch = "", rev = 0, wait = often, timer = 0, paused = false, skew = 0, asking = false;
let ticks = [];
const feed = new Map(); // epoch/id -> { r, node }

async function ask() {
  clearTimeout(timer);
  if (asking) return;
  asking = true;
  try {
    const view = location.hash;
    const from = ticks.length ? ticks[ticks.length - 1].at : 0;
    show(await get(`/api/status?after=${rev}&from=${from}`));
    if (view === "#runs" || view.startsWith("#run=")) await runs(view.slice("#run=".length), [...feed.values()].map((f) => f.r));
    wait = often;
    link("ok", "live");
  } catch (e) {
    if (e instanceof Denied) return denied(e.message);
    wait = Math.min(wait * 2, seldom);
    link("lost", `no answer; trying again in ${lasting(wait)}`);
  } finally {
    asking = false;
  }
  next();
}

function next() {
  clearTimeout(timer);
  if (paused || document.hidden) return;
  timer = setTimeout(ask, wait);
}

function link(state, text) {
  const l = $("link");
  if (l.textContent === text) return;
  l.dataset.state = state;
  l.textContent = text;
}

function denied(why) {
  link("lost", "asks for the token");
  $("ask").hidden = false;
  $("overview").hidden = $("runs").hidden = true;
  $("denied").textContent = why;
  $("token").focus();
}

function show(t) {
  if (epoch && epoch !== t.epoch) { // another process: its numbers begin anew
    rev = 0; epoch = t.epoch; ticks = [];
    for (const f of feed.values()) f.node.classList.add("before");
    $("feed-note").textContent = `the proxy was started anew at ${clock(t.status.since)}`;
    wait = 0;
    return;
  }
  epoch = t.epoch; rev = t.rev;
  skew = Date.parse(t.now) - Date.now();
  $("ask").hidden = true;
  $("to-runs").hidden = !t.ledger;
  route();
  past(t);
  tiles(t);
  for (const r of t.recoveries) recovery(r);
  $("feed-none").hidden = feed.size > 0;
  lives(t);
  upstreams(t.status);
  store(t.status.store);
  config(t.status.config);
}

function past(t) {
  const from = t.history.length ? t.history[0].at : Infinity;
  ticks = ticks.filter((k) => k.at < from).concat(t.history);
  const now = Date.parse(t.now) / 1000;
  ticks = ticks.filter((k) => k.at > now - 3700);
  const draw = (...a) => chart(a[0], a[1], a[2], ticks, t.tick_seconds, now, a[3]);
  $("charts").replaceChildren(
    draw("Turns that ended", "n", [["unbroken", "c-clean", "clean"], ["healed", "c-healed", "healed"], ["failed", "c-failed", "failed"], ["other", "c-other", "other"]], add),
    draw("Interruptions", "n", [["interruptions", "c-gap", "interruptions"]], add),
    draw("Longest gap a client felt", "ms", [["at most", "c-gap", "gap_ms"]], most),
    draw("Live streams", "n", [["at most", "c-clean", "live"]], most),
  );
}

function tiles(t) {
  const s = t.status, failed = s.ended.provider + s.ended.us;
  const tile = (name, value, note, kind) => el("div", { class: `tile ${kind ?? ""}` }, el("span", {}, name), el("strong", {}, value), el("small", {}, note ?? ""));
  $("tiles").replaceChildren(
    tile("In flight", count(s.live), s.waiting ? `${count(s.waiting)} in line` : s.ready ? "ready" : "draining", s.ready ? "" : "warn"),
    tile("Healed turns", count(t.totals.healed), `${count(t.totals.interruptions)} ${t.totals.interruptions === 1 ? "interruption" : "interruptions"}`, t.totals.healed ? "good" : ""),
    tile("Completed", count(s.ended.completed), `of ${count(s.accepted)} requests`),
    tile("Failed", count(failed), `${count(s.ended.client)} left, ${count(s.ended.request)} refused`, failed ? "bad" : ""),
    tile("Tokens saved", `≈ ${count(t.totals.saved_tokens)}`, "against full retries"),
    tile("Tokens repaid", count(t.totals.repaid_tokens), "prompts sent again"),
  );
}

function recovery(r) {
  const id = `${epoch}/${r.id}`;
  const node = row(r);
  const old = feed.get(id);
  if (old) old.node.replaceWith(node);
  else $("feed").prepend(node);
  feed.set(id, { r, node });
  if (feed.size > keptFeed) {
    const [first, { node: oldest }] = feed.entries().next().value;
    oldest.remove();
    feed.delete(first);
  }
}

function lives(t) {
  const age = (iso) => lasting(Date.now() + skew - Date.parse(iso));
  table($("live"), [
    ["State", (l) => chip(l.state, { recovering: "warn", streaming: "good" }[l.state])],
    ["For", (l) => age(l.since)],
    ["Age", (l) => age(l.began)],
    ["Upstream", (l) => l.upstream],
    ["Model", (l) => l.model],
    ["Attempts", (l) => count(l.attempts)],
    ["Last cause", (l) => words(l.cause)],
    ["Run", (l) => el("code", { title: l.run }, l.run)],
  ], t.live);
  $("live-none").hidden = t.live.length > 0;
  $("live-note").textContent = t.live_all > t.live.length ? `${count(t.live.length)} of ${count(t.live_all)}` : t.live_all ? count(t.live_all) : "";
}

function upstreams(s) {
  const of = (name) => s.breakers.filter((b) => b.upstream === name);
  const open = { open: "bad", "half-open": "warn", closed: "good" };
  table($("upstreams"), [
    ["Upstream", (u) => el("b", {}, u.name)],
    ["Breakers", (u) => (of(u.name).length ? of(u.name).map((b) => [chip(`${b.model || "other models"}: ${b.state}`, open[b.state]), b.until ? ` for ${lasting(Date.parse(b.until) - Date.now() - skew)} ` : " "]) : chip("closed", "good"))],
    ["Live", (u) => count(u.live)],
    ["Recovering", (u) => count(u.recoveries)],
    ["In line", (u) => count(u.waiting)],
    ["Healthy rate", (u) => `${u.healthy_rate.toFixed(1)}/s`],
  ], s.upstreams);
}

function store(st) {
  const facts = [["Where", st.store], ["State", st.away ? chip(`away${st.error ? `: ${st.error}` : ""}`, "bad") : chip("answers", "good")],
    ["To be written", `${count(st.behind_bytes)} bytes of ${count(st.behind_turns)} turns`], ["Lag", lasting(st.lag_ms)], ["Given up", count(st.drops)], ["Fenced", count(st.fenced)]];
  $("store").replaceChildren(...facts.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)]));
}

function route() {
  const inRuns = location.hash === "#runs" || location.hash.startsWith("#run=");
  $("overview").hidden = inRuns;
  $("runs").hidden = !inRuns;
  for (const [id, on] of [["to-overview", !inRuns], ["to-runs", inRuns]]) {
    if (on) $(id).setAttribute("aria-current", "page"); else $(id).removeAttribute("aria-current");
  }
}

addEventListener("hashchange", () => { route(); ask(); });
document.addEventListener("visibilitychange", () => { if (!document.hidden && !paused) ask(); });
$("pause").addEventListener("click", () => {
  paused = !paused;
  $("pause").setAttribute("aria-pressed", String(paused));
  $("pause").textContent = paused ? "Go on" : "Pause";
  if (paused) { clearTimeout(timer); link("wait", "paused"); } else ask();
});
$("ask").addEventListener("submit", (e) => { e.preventDefault(); keepToken($("token").value); $("token").value = ""; ask(); });
ask();

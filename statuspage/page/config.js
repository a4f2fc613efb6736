import { $, el, chip, count } from "./dom.js";

let shown = "";

/** config tells what is in force since when, what waits for a restart, and why the last reload
 * was refused. It is built anew only when something changed, so that it can be selected and copied. */
export function config(c) {
  const text = JSON.stringify(c);
  if (text === shown) return;
  shown = text;
  const refused = c.problems.length > 0;
  word(refused, c.pending);
  const facts = [
    ["File", c.file ? el("code", {}, c.file) : "none: defaults, variables and flags"],
    ["In force since", moment(c.loaded)],
    ["Reloads", `${count(c.accepted)} taken, ${count(c.refused)} refused`],
    ["Last reload", refused ? [chip("refused", "bad"), " ", c.refused_at ? moment(c.refused_at) : "", "; what was in force stays"] : c.accepted ? chip("taken", "good") : "none yet"],
    ["Waits for a restart", c.pending.length ? c.pending.map((key) => [chip(key, "warn"), " "]) : "nothing"],
  ];
  $("config-facts").replaceChildren(
    el("dl", {}, facts.flatMap(([k, v]) => [el("dt", {}, k), el("dd", {}, v)])),
    ...(refused ? [el("h3", {}, "Why it was refused"), el("ul", { class: "problems" }, c.problems.map((p) => el("li", {}, el("code", {}, p))))] : []),
  );
}

/** word says at the top of the page what needs somebody. */
function word(refused, pending) {
  const w = $("config-word");
  w.hidden = !refused && pending.length === 0;
  w.className = `word ${refused ? "bad" : "warn"}`;
  w.replaceChildren(...(w.hidden ? [] : [
    refused ? "The configuration was changed and refused: the next start would fail. " : `${count(pending.length)} changed ${pending.length === 1 ? "setting waits" : "settings wait"} for a restart. `,
    el("a", { href: "#config" }, refused ? "See why" : "See which"),
  ]));
}

const moment = (iso) => el("time", { datetime: iso }, new Date(iso).toLocaleString("en-GB"));

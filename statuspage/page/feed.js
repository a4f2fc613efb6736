import { el, lasting, count, clock, words, chip } from "./dom.js";

const tones = { under_way: "warn", healed: "good", finished: "good", again: "", gave_up: "bad", left: "" };
const plans = { refuse: "give up", finish: "finish", resume: "resume", r1_continue_text: "R1 continue", r2_synthesize_tool_use: "R2 end as tool use", r3_truncate_before_tool: "R3 drop cut call", r4_whole_restart: "R4 restart" };

/** row is one recovery: when, whose, what broke and what was planned, how it went. */
export function row(r) {
  return el("li", {},
    el("time", { datetime: r.at }, clock(r.at)),
    el("span", { class: "who" }, el("b", {}, r.upstream), " ", r.model, el("code", { title: r.run }, r.run)),
    el("span", { class: "what" }, chip(words(r.cause) + (r.status ? ` ${r.status}` : ""), "bad"), " → ", chip(plans[r.plan] ?? words(r.plan), "key"), el("small", {}, words(r.reason))),
    el("span", { class: "how" },
      r.seam ? el("span", {}, `seam ${words(r.seam)}${r.joined ? "" : " (failed)"}`) : undefined,
      r.gap_ms ? el("span", {}, `gap ${lasting(r.gap_ms)}`) : undefined,
      r.saved_tokens ? el("span", {}, `≈ ${count(r.saved_tokens)} tokens saved`) : undefined),
    chip(words(r.result), tones[r.result]));
}

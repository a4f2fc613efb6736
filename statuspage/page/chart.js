import { el, svg, count, lasting } from "./dom.js";

const width = 360, height = 96, slots = 60;

/** chart draws the last hour, a bar per minute. series are [name, class, field]. */
export function chart(title, unit, series, ticks, seconds, now, join) {
  const per = 3600 / slots;
  const first = Math.floor(now / per) - slots + 1;
  const bars = Array.from({ length: slots }, () => series.map(() => 0));
  for (const t of ticks) {
    const i = Math.floor(t.at / per) - first;
    if (i < 0 || i >= slots) continue;
    series.forEach(([, , field], s) => { bars[i][s] = join(bars[i][s], t[field]); });
  }
  const sums = bars.map((b) => b.reduce((a, n) => a + n, 0));
  const top = Math.max(1, ...sums);
  const say = unit === "ms" ? lasting : count;
  const w = width / slots;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.append(svg("line", { x1: 0, y1: height - 0.5, x2: width, y2: height - 0.5, class: "axis" }));
  bars.forEach((b, i) => {
    if (sums[i] === 0) return;
    const at = new Date((first + i) * per * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
    const g = svg("g", {}, svg("title", {}, `${at}: ` + series.map(([name], s) => `${say(b[s])} ${name}`).join(", ")));
    let y = height - 1;
    series.forEach(([, kind], s) => {
      const h = (b[s] / top) * (height - 6);
      if (h <= 0) return;
      y -= h;
      g.append(svg("rect", { x: (i * w + 0.5).toFixed(2), y: y.toFixed(2), width: (w - 1).toFixed(2), height: h.toFixed(2), class: kind }));
    });
    drawing.append(g);
  });
  const totals = series.map((_, s) => bars.reduce((a, b) => join(a, b[s]), 0));
  const said = series.map(([name], s) => `${say(totals[s])} ${name}`).join(", ");
  return el("figure", { role: "img", "aria-label": `${title}, the last hour: ${said}` },
    el("figcaption", {}, el("b", {}, title), el("span", {}, series.map(([name, kind], s) => el("span", { class: "key" }, el("i", { class: kind }), `${name} ${say(totals[s])}`)))),
    drawing,
    el("div", { class: "scale", "aria-hidden": "true" }, el("span", {}, "60 min ago"), el("span", {}, `peak ${say(top === 1 && Math.max(...sums) === 0 ? 0 : top)}`), el("span", {}, "now")));
}

export const add = (a, b) => a + b;
export const most = Math.max;

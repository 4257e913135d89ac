// Small pictures drawn from numbers: bars, intervals, the learning curve. Plain SVG, coloured by CSS.

const SVG = "http://www.w3.org/2000/svg";

export function draw(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

const picture = (width, height, label, name) => draw("svg", {
  viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: name,
});

/** A bar of parts: [{share, kind}], shares of the whole. */
export function bar(into, parts, label) {
  const key = JSON.stringify([parts, label]);
  if (into.dataset.shown === key) return;
  into.dataset.shown = key;
  const svg = picture(400, 12, label, "bar-svg");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.append(draw("rect", { x: 0, y: 0, width: 400, height: 12, class: "part-rest" }));
  let at = 0;
  for (const { share, kind } of parts) {
    const wide = 400 * Math.max(0, Math.min(1 - at, share));
    svg.append(draw("rect", { x: 400 * at, y: 0, width: wide, height: 12, class: `part-${kind}` }));
    at += wide / 400;
  }
  into.replaceChildren(svg);
}

/** A point with its interval between 0 and 1. */
export function interval({ mean, low, high }, label) {
  const x = (value) => 4 + 152 * Math.max(0, Math.min(1, value));
  const svg = picture(160, 20, label, "interval");
  svg.append(
    draw("line", { x1: 4, x2: 156, y1: 10, y2: 10, class: "axis" }),
    ...[0, 0.5, 1].map((tick) => draw("line", { x1: x(tick), x2: x(tick), y1: 7, y2: 13, class: "axis" })),
    draw("line", { x1: x(low), x2: x(high), y1: 10, y2: 10, class: "range" }),
    draw("circle", { cx: x(mean), cy: 10, r: 4.5, class: "mean" }),
  );
  return svg;
}

/** The learning curve; gives null where there are no two points to draw. */
export function learningCurve({ points, curve, target }, wide = 640) {
  if (points.length < 2) return null;
  const [width, height] = [wide, Math.max(230, Math.min(300, 0.5 * wide))];
  const frame = { left: 44, right: 14, top: 14, bottom: 40 };
  const xs = [...points.map((p) => p.items), ...(curve?.items ?? [])];
  const ys = [...points.flatMap((p) => [p.low, p.high]), ...(curve ? [...curve.low, ...curve.high] : []), ...(target ? [target] : [])];
  const [x0, x1] = ends(Math.min(...xs), Math.max(...xs), true);
  const [y0, y1] = ends(Math.max(0, Math.min(...ys)), Math.min(1, Math.max(...ys)));
  const x = (v) => frame.left + (v - x0) / (x1 - x0) * (width - frame.left - frame.right);
  const y = (v) => height - frame.bottom - (v - y0) / (y1 - y0) * (height - frame.top - frame.bottom);
  const last = points.at(-1);
  const label = `Learning curve: after ${last.items} items the score is ${last.value.toFixed(3)}, between ${last.low.toFixed(3)} and ${last.high.toFixed(3)}.`;
  const svg = picture(width, height, label, "curve-svg");
  const edge = { left: frame.left, right: width - frame.right, foot: height - frame.bottom };
  for (const tick of ticks(y0, y1, 5)) {
    svg.append(draw("line", { x1: edge.left, x2: edge.right, y1: y(tick), y2: y(tick), class: "grid" }),
      words(edge.left - 8, y(tick) + 4, tick.toFixed(y1 - y0 < 0.2 ? 2 : 1), "end"));
  }
  for (const tick of ticks(x0, x1, width < 480 ? 4 : 7)) svg.append(words(x(tick), edge.foot + 18, String(Math.round(tick)), "middle"));
  svg.append(words((edge.left + edge.right) / 2, height - 4, "labelled items", "middle"));
  if (target) {
    svg.append(draw("line", { x1: edge.left, x2: edge.right, y1: y(target), y2: y(target), class: "target" }),
      words(edge.right, y(target) + (curve?.score.at(-1) > target ? 16 : -6), `target ${target}`, "end", "target-word"));
  }
  if (curve) svg.append(...fitted(curve, x, y, last.items));
  for (const p of points) {
    svg.append(draw("line", { x1: x(p.items), x2: x(p.items), y1: y(p.low), y2: y(p.high), class: "spread" }),
      draw("circle", { cx: x(p.items), cy: y(p.value), r: 4.5, class: "point" }));
  }
  return svg;
}

function fitted(curve, x, y, now) {
  const within = (v) => Math.max(0, Math.min(1, v));
  const line = (values, from = 0) => values.slice(from).map((v, i) => `${x(curve.items[i + from]).toFixed(1)},${y(within(v)).toFixed(1)}`);
  const seen = Math.max(1, curve.items.findIndex((n) => n > now));
  return [
    draw("polygon", { points: [...line(curve.high), ...line(curve.low).reverse()].join(" "), class: "band" }),
    draw("polyline", { points: line(curve.score.slice(0, seen)).join(" "), class: "fit" }),
    draw("polyline", { points: line(curve.score, seen - 1).join(" "), class: "fit ahead" }),
  ];
}

function words(x, y, text, anchor, name = "tick") {
  return draw("text", { x, y, "text-anchor": anchor, class: name }, text);
}

// A little room around the values; an axis of one value has a width too.
function ends(low, high, fromZero = false) {
  const room = 0.08 * (high - low) || 0.5 * Math.abs(high) || 1;
  return [fromZero ? Math.max(0, low - room) : Math.max(0, low - room), fromZero ? high + room : Math.min(1, high + room)];
}

function ticks(low, high, most) {
  const rough = (high - low) / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
  return found;
}

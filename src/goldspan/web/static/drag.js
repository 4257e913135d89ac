// A drag with the mouse, from the press to the release. Near an edge of what can be seen the page
// goes on by itself, the faster the nearer.

const EDGE = 48; // pixels from an edge where it begins
const FASTEST = 12; // pixels a frame

/** Follow the mouse: `move(x, y)` hears of every place, `end(finished)` of the end; `bounds()` gives
 *  {top, bottom} of what can be seen of the text, infinite where there is no more of it. */
export function followDrag(event, { move, end, bounds }) {
  const stop = new AbortController();
  let [x, y, frame] = [event.clientX, event.clientY, 0];
  const go = () => {
    const { top, bottom } = bounds();
    const speed = speedAt(y, top, bottom);
    const before = scrollY;
    if (!speed) frame = 0;
    else {
      scrollBy(0, speed);
      frame = requestAnimationFrame(go);
      if (scrollY !== before) place();
    }
  };
  // Behind the edge there is no text: what is at the edge is what is meant.
  const place = () => {
    const { top, bottom } = bounds();
    move(x, Math.max(top + 1, Math.min(bottom - 1, y)));
  };
  const finish = (finished) => {
    stop.abort();
    cancelAnimationFrame(frame);
    end(finished);
  };
  addEventListener("pointermove", (moved) => {
    [x, y] = [moved.clientX, moved.clientY];
    place();
    if (!frame) frame = requestAnimationFrame(go);
  }, { signal: stop.signal });
  addEventListener("pointerup", () => finish(true), { signal: stop.signal });
  addEventListener("pointercancel", () => finish(false), { signal: stop.signal });
}

function speedAt(y, top, bottom) {
  const over = y < top + EDGE ? y - top - EDGE : Math.max(0, y - bottom + EDGE);
  return Math.sign(over) * Math.ceil(FASTEST * Math.min(1, Math.abs(over) / (2 * EDGE)));
}

/** {top, bottom} of what can be seen of a text above its dock; infinite where nothing is hidden. */
export function beyond(text, dock) {
  const [{ top, bottom }, foot] = [text.getBoundingClientRect(), Math.min(innerHeight, dock.getBoundingClientRect().top)];
  return { top: top < 0 ? 0 : -Infinity, bottom: bottom > foot ? foot : Infinity };
}

/** The token at a place, or the nearest one: in its line, else in the nearest line. */
export function tokenNear(cells, x, y) {
  const here = tokenOf(document.elementFromPoint(x, y));
  if (here !== null && cells[here]) return here;
  if (!cells.length) return null;
  const box = (i) => cells[i].getBoundingClientRect();
  const middle = (one) => (one.top + one.bottom) / 2;
  // The lines follow each other down the page: halving finds the last token that is not below.
  let [low, high] = [0, cells.length - 1];
  while (low < high) {
    const half = (low + high + 1) >> 1;
    if (middle(box(half)) <= y) low = half;
    else high = half - 1;
  }
  const next = Math.min(low + 1, cells.length - 1);
  const line = Math.abs(middle(box(low)) - y) <= Math.abs(middle(box(next)) - y) ? low : next;
  const at = middle(box(line));
  let [best, far] = [line, Infinity];
  for (const way of [-1, 1]) {
    for (let i = line + (way > 0 ? 0 : -1); i >= 0 && i < cells.length; i += way) {
      const there = box(i);
      if (there.bottom < at || there.top > at) break;
      const aside = Math.max(there.left - x, x - there.right, 0);
      if (aside < far) [best, far] = [i, aside];
    }
  }
  return best;
}

/** Between which tokens a place is: the number of the token that follows it in the text. */
export function gapAt(cells, x, y, rtl) {
  const near = tokenNear(cells, x, y);
  if (near === null) return 0;
  const { left, right } = cells[near].getBoundingClientRect();
  const behind = rtl[near] ? x < (left + right) / 2 : x > (left + right) / 2;
  return near + (behind ? 1 : 0);
}

/** The token that an element belongs to, or null. */
export function tokenOf(element) {
  const cell = element?.closest?.(".token");
  return cell ? Number(cell.dataset.i) : null;
}

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
    // Behind the edge there is no text: what is at the edge is what is meant.
    const place = () => move(x, Math.max(top + 1, Math.min(bottom - 1, y)));
    if (!speed) frame = 0;
    else {
      scrollBy(0, speed);
      frame = requestAnimationFrame(go);
      if (scrollY !== before) place();
    }
  };
  const finish = (finished) => {
    stop.abort();
    cancelAnimationFrame(frame);
    end(finished);
  };
  addEventListener("pointermove", (moved) => {
    [x, y] = [moved.clientX, moved.clientY];
    move(x, y);
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

/** The token at a place, or null; between two words either is meant. */
export function tokenNear(x, y) {
  const places = [0, -8, 8].map((aside) => tokenOf(document.elementFromPoint(x + aside, y)));
  return places.find((i) => i !== null) ?? null;
}

/** The token that an element belongs to, or null. */
export function tokenOf(element) {
  const cell = element?.closest?.(".token");
  return cell ? Number(cell.dataset.i) : null;
}

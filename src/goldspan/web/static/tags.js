// The lines of spans that overlap, below the words, and the names of kinds, above the words or below
// their lines: each is cut where the next one begins, or the line ends.

/** Draw lines below an element; `lines` are {row, number, isOpen, isLast}: rows are counted from the
 *  words down, at its last piece a line ends short of the next one. */
export function drawLines(element, lines, rtl) {
  const drawn = lines.map(({ row, number, isOpen, isLast }) => {
    const colour = `var(--t${number % 10})`;
    const dashes = isOpen ? `repeating-linear-gradient(90deg, ${colour} 0 5px, transparent 5px 9px)` : `linear-gradient(${colour}, ${colour})`;
    const [side, size] = isLast ? [rtl ? "right" : "left", "calc(100% - 3px) 3px no-repeat"] : ["left", "100% 3px repeat-x"];
    return `${dashes} ${side} 0 bottom calc((var(--rows) - ${row}) * var(--row) - 3px) / ${size}`;
  });
  if (drawn.length) element.style.setProperty("--lines", drawn.join(", "));
  else element.style.removeProperty("--lines");
}

/** Give every name its room; `firsts` are the first tokens of the spans, in their order, or the names
 *  of overlapping ones, row by row; `rtls` says of each whether its line runs from right to left. */
export function cutNames(text, firsts, rtls) {
  const frame = text.getBoundingClientRect();
  // All is measured before anything is changed: a browser then lays the text out once.
  const places = firsts.map((cell) => cell.getClientRects()[0] ?? cell.getBoundingClientRect());
  const rooms = places.map((place, i) => {
    const next = places[i + 1];
    const shared = next && Math.abs(next.top - place.top) < place.height / 2;
    const end = rtls[i] ? frame.left : frame.right;
    const until = shared ? next : { left: end, right: end };
    return rtls[i] ? place.right - until.right : until.left - place.left;
  });
  firsts.forEach((cell, i) => {
    const room = `${Math.max(0, Math.floor(rooms[i]) - 1)}px`;
    if (cell.style.getPropertyValue("--room") !== room) cell.style.setProperty("--room", room);
  });
}

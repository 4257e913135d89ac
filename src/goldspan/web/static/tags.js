// The names of kinds above the spans: each is cut where the next one begins, or the line ends.

/** Give every name its room; `firsts` are the first tokens of the spans, in their order, and `rtls`
 *  says of each whether its line runs from right to left. */
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

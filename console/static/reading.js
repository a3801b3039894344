// What of a card was on screen: each line of a text, each added or removed line of a difference, from edge to edge and
// for a moment. What was jumped over, or hidden by the bars, was not. Must never call a line seen that could not be.
"use strict";

const Reading = (() => {
  const MOMENT_MS = 80; // a fling stays below this per screen; a jump does not
  const OVERLAP_PX = 48;
  let left = [], at = {}, groups = [], shown = () => {}, past = [], frame = 0;

  function stop() {
    cancelAnimationFrame(frame);
    left = [];
  }

  // `show({ changes, lines, all })` is called with what was seen of each, and of how many.
  function watch(card, form, show) {
    stop();
    at = { card, form };
    groups = [...Folds.changes(card).map((rows) => ({ kind: "changes", rows })),
      ...[...card.querySelectorAll(".sheet .ln")].map((line) => ({ kind: "lines", rows: [line] }))];
    const rows = groups.flatMap((group) => group.rows);
    const bare = [...card.querySelectorAll(".sheet")].filter((sheet) => !sheet.querySelector(".ln, .add, .del"));
    left = [...rows, ...bare.map((sheet) => sheet.querySelector(".end") || sheet)].map((element) => ({ element, from: 2, to: -1 }));
    left.sort((one, other) => one.element.compareDocumentPosition(other.element) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1);
    shown = show;
    past = [];
    tell();
    if (left.length) frame = requestAnimationFrame(look);
  }

  // Between the bars, from the top of the card: what moves with the card moves nothing.
  function pane() {
    const origin = at.card.getBoundingClientRect().top;
    let above = 0;
    for (const bar of document.querySelectorAll(".rail, .offline:not([hidden])")) {
      const { top, bottom, width } = bar.getBoundingClientRect();
      if (top <= above + 1 && width > innerWidth / 2) above = Math.max(above, bottom);
    }
    return { origin, above: above - origin, below: Math.min(innerHeight, at.form.getBoundingClientRect().top) - origin };
  }

  function look(now) {
    if (!at.card.isConnected) return;
    frame = requestAnimationFrame(look);
    if (document.hidden) return void (past = []);
    const here = { now, ...pane(), height: at.card.offsetHeight };
    if (past.length && past[0].height !== here.height) past = []; // unfolded, or another width
    past.push(here);
    while (past.length > 1 && now - past[1].now >= MOMENT_MS) past.shift();
    if (now - past[0].now < MOMENT_MS) return;
    const above = Math.max(...past.map((each) => each.above)), below = Math.min(...past.map((each) => each.below));
    if (below > above && take(here.origin, above, below)) tell();
    if (!left.length) cancelAnimationFrame(frame);
  }

  // What lies in [above, below] of the card was on screen all that time. True when something was read to its end.
  function take(origin, above, below) {
    const read = new Set();
    for (let n = firstBelow(origin + above); n < left.length; n += 1) {
      const { top, height } = left[n].element.getBoundingClientRect();
      if (top - origin >= below) break;
      const from = (above + origin - top) / (height || 1), to = height ? (below + origin - top) / height : 1;
      widen(left[n], Math.max(0, from), Math.min(1, to));
      const edge = 1 / (height || 1); // a pixel is no letter
      if (left[n].from <= edge && left[n].to >= 1 - edge) read.add(left[n]);
    }
    if (!read.size) return false;
    for (const { element } of read) element.classList.add("seen");
    left = left.filter((each) => !read.has(each));
    return true;
  }

  function widen(line, from, to) {
    const touches = from <= line.to && to >= line.from;
    line.from = touches ? Math.min(line.from, from) : from;
    line.to = touches ? Math.max(line.to, to) : to;
  }

  function firstBelow(y) {
    let low = 0, high = left.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (left[middle].element.getBoundingClientRect().bottom > y) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  function tell() {
    const said = { changes: { seen: 0, of: 0 }, lines: { seen: 0, of: 0 }, all: !left.length };
    const unread = new Set(left.map((each) => each.element));
    for (const { kind, rows } of groups) {
      said[kind].of += 1;
      if (!rows.some((row) => unread.has(row))) said[kind].seen += 1;
    }
    shown(said);
  }

  // To the first thing not seen: one page on, or to where it was jumped over. Waits while a page is being taken in.
  function on() {
    if (!left.length) return;
    const { origin, above, below } = pane(), { element } = left[0];
    const { top, bottom } = element.getBoundingClientRect(), page = below - above;
    const inside = top < origin + below && bottom > origin + above, fits = bottom - top <= page;
    if (inside && (fits ? top >= origin + above && bottom <= origin + below : left[0].from > 1)) return;
    const begun = left[0].from <= 0.001 && left[0].to > 0; // longer than a page
    const y = begun && !fits ? top + left[0].to * (bottom - top) : top;
    scrollBy(0, y - (origin + above) - Math.min(OVERLAP_PX, page / 4));
  }

  const typing = () => document.activeElement?.closest("input, textarea, select, .list, .out, [popover]");

  document.addEventListener("click", (event) => { if (event.target.closest("[data-read-on]")) on(); });
  document.addEventListener("keydown", (event) => {
    if (!left.length || typing() || event.altKey || event.shiftKey) return;
    const end = event.key === "End" || (event.metaKey && event.key === "ArrowDown");
    if (event.key === "PageDown" && !event.ctrlKey && !event.metaKey) on();
    else if (end) scrollTo(0, document.documentElement.scrollHeight); // at once: nothing flies past that counts
    else return;
    event.preventDefault();
  });

  return { watch, stop };
})();

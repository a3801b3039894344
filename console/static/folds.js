// Differences: unchanged lines far from a change are folded away, and one press leads from change to change.
// Without this script every line stands there, unfolded.
"use strict";

const Folds = (() => {
  const AROUND = 3; // unchanged lines that stay beside a change
  const WORTH = 8; // fewer than these are not folded

  const isChange = (row) => row.matches(".add, .del");

  function fold(card) {
    for (const body of card.querySelectorAll(".diff > tbody")) {
      const rows = [...body.rows];
      for (let from = 0, to; from < rows.length; from = to) {
        to = from + 1;
        if (isChange(rows[from])) continue;
        while (to < rows.length && !isChange(rows[to])) to += 1;
        foldRun(rows.slice(from ? from + AROUND : 0, to < rows.length ? Math.max(0, to - AROUND) : to));
      }
    }
  }

  function foldRun(rows) {
    if (rows.length < WORTH) return;
    const row = document.createElement("tr"), button = document.createElement("button");
    button.type = "button";
    button.textContent = `Show ${rows.length} unchanged lines`;
    row.className = "fold";
    row.append(document.createElement("td"));
    row.cells[0].colSpan = 4;
    row.cells[0].append(button);
    rows[0].before(row);
    for (const each of rows) each.hidden = true;
    button.addEventListener("click", () => unfold(row, rows));
  }

  function unfold(row, rows) {
    for (const each of rows) each.hidden = false;
    row.remove();
    rows[0].tabIndex = -1;
    rows[0].focus({ preventScroll: true });
  }

  // The rows of each change: neighbours that are added or removed.
  function changes(within) {
    const found = [];
    for (const row of within.querySelectorAll(".diff > tbody > tr")) {
      if (!isChange(row)) continue;
      if (row.previousElementSibling && isChange(row.previousElementSibling)) found.at(-1).push(row);
      else found.push([row]);
    }
    return found;
  }

  // The first one that begins below the upper third of what can be seen; behind the last one the first.
  function next(sheet) {
    const firsts = changes(sheet).map((rows) => rows[0]), line = innerHeight / 3 + 4;
    const target = firsts.find((row) => row.getBoundingClientRect().top > line) || firsts[0];
    if (target) scrollBy(0, target.getBoundingClientRect().top - innerHeight / 3);
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-next-change]");
    if (!link) return;
    event.preventDefault();
    next(link.closest(".sheet"));
  });
  addEventListener("beforeprint", () => { for (const each of document.querySelectorAll(".fold button")) each.click(); });

  return { fold, changes };
})();

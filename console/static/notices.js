// With a page open: tells this person's desktop that something waits, by agent, tool and link. Never what would run.
// At most one in five minutes over all tabs of this browser, at once for what is flagged, nearly over or undecided for long.
"use strict";

(() => {
  const QUIET_MS = 5 * 60_000, URGENT_MS = 30_000, LOOK_MS = 20_000, APART_MS = 3_000;
  const where = document.body.dataset.notices;
  if (!where) return;
  const KEY = `sandgate.notices:${where}`;
  const one = (selector) => document.querySelector(selector);
  const can = "Notification" in window && navigator.locks; // needs HTTPS, or this machine
  let waiting = [], looked = 0, next = 0;

  function kept() {
    try { return { on: false, at: 0, told: {}, ...JSON.parse(localStorage.getItem(KEY)) }; }
    catch { return { on: false, at: 0, told: {} }; }
  }
  const keep = (now) => localStorage.setItem(KEY, JSON.stringify(now));
  const isOn = () => can && kept().on && Notification.permission === "granted";

  function news(items, before) {
    return items.filter(({ id, reasons }) => reasons.some((reason) => !(before[id] || []).includes(reason)));
  }

  function words(fresh) {
    const counts = new Map();
    for (const { agent, tool, instead_of } of fresh) {
      const line = `${agent}: ${tool}${instead_of.length ? `, for ${instead_of.join(" and ")}` : ""}`;
      counts.set(line, (counts.get(line) || 0) + 1);
    }
    const lines = [...counts].map(([line, count]) => (count > 1 ? `${line} ×${count}` : line));
    return lines.length > 4 ? [...lines.slice(0, 4), `and ${lines.length - 4} more`].join("\n") : lines.join("\n");
  }

  function show(fresh, queue) {
    const title = fresh.length === 1 ? "1 action waits for approval" : `${fresh.length} actions wait for approval`;
    const shown = new Notification(title, { body: words(fresh), tag: KEY });
    shown.onclick = () => {
      window.focus();
      location.assign(fresh.length === 1 ? fresh[0].link : queue);
    };
  }

  // One tab at a time, so that two do not tell the same.
  const may = () => isOn() && waiting.length && Date.now() - kept().at >= URGENT_MS;
  const look = () => may() && navigator.locks.request(KEY, async () => {
    const answer = await fetch(where, { headers: { Accept: "application/json" }, redirect: "error" }).catch(() => null);
    if (!answer?.ok) return;
    const { link, items } = await answer.json(), now = kept(), fresh = news(items, now.told);
    if (!fresh.length) return;
    const urgent = fresh.some(({ id, reasons }) => reasons.some((reason) => reason !== "waiting" && !(now.told[id] || []).includes(reason)));
    if (Date.now() - now.at < (urgent ? URGENT_MS : QUIET_MS)) return;
    show(fresh, link);
    keep({ on: true, at: Date.now(), told: Object.fromEntries(items.map(({ id, reasons }) => [id, [...new Set([...(now.told[id] || []), ...reasons])]])) });
  });

  function draw() {
    const on = one("[data-notices-on]"), off = one("[data-notices-off]");
    if (!on) return;
    const denied = can && Notification.permission === "denied";
    on.hidden = !can || denied || isOn();
    off.hidden = !isOn();
    const state = one("[data-notices-state]");
    state.classList.toggle("go", Boolean(isOn()));
    state.querySelector("span").textContent = isOn() ? "on" : "off";
    const hint = one("[data-notices-hint]");
    if (denied) hint.textContent = "This browser was told to refuse them. Allow notifications for this site in its settings first.";
    else if (!can) hint.textContent = "This browser shows none here: it wants HTTPS, or the machine that the console runs on.";
    else hint.textContent = "While a page of the console is open here.";
  }

  document.addEventListener("click", async (event) => {
    if (event.target.closest("[data-notices-on]") && await Notification.requestPermission() === "granted") {
      keep({ ...kept(), on: true });
      look();
    }
    if (event.target.closest("[data-notices-off]")) keep({ ...kept(), on: false });
    draw();
  });
  // At most every few seconds, however much comes: each look is of all that waits.
  function lookSoon() {
    next ||= setTimeout(() => { next = 0; looked = Date.now(); look(); }, Math.max(0, looked + APART_MS - Date.now()));
  }
  document.addEventListener("sandgate:waiting", ({ detail }) => {
    const known = new Set(waiting);
    waiting = detail;
    if (detail.some((id) => !known.has(id))) lookSoon();
  });
  setInterval(look, LOOK_MS);
  draw();
})();

// What every page does by itself: hears of changes, counts what waits, keeps rows and times current.
// The socket carries ids, numbers and states; what is shown is fetched from the page's own addresses.
"use strict";

(() => {
  const body = document.body;
  const offset = Date.parse(body.dataset.now || "") - Date.now() || 0;
  const open = new Map(); // id -> status, of everything asked that has not ended
  const shown = new Map();
  const loading = new Map(); // address -> AbortController: the newest answer wins
  const MOST_MS = 20000;
  let seq = 0, tries = 0, timer = 0, retryAt = 0;

  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const opened = () => one("#card")?.dataset.id || "";
  const deciding = () => Boolean(one("#card form.htmx-request")); // its answer brings the card as it then is

  // ---- fragments ----
  // True when its answer came; what a newer one took over is over.
  async function load(target, address) {
    loading.get(address)?.abort();
    const control = new AbortController();
    loading.set(address, control);
    const late = setTimeout(() => control.abort(), MOST_MS);
    try {
      const answer = await fetch(address, { headers: { "HX-Request": "true" }, signal: control.signal });
      const elsewhere = answer.headers.get("HX-Redirect");
      if (elsewhere) return location.assign(elsewhere);
      if (answer.ok) swap(target(), await answer.text());
      return answer.ok;
    } catch (error) {
      if (error.name !== "AbortError") console.warn(error);
    } finally {
      clearTimeout(late);
      if (loading.get(address) === control) loading.delete(address);
    }
  }

  function swap(target, html) {
    const bare = html.replace(/(csrfmiddlewaretoken" value=)"[^"]*"/g, "$1"); // which is masked anew each time
    if (!target || shown.get(target.id) === bare) return;
    if (target.id) shown.set(target.id, bare); // a poll that brings nothing new leaves selections alone
    const ticked = [...target.querySelectorAll('.row [name="action"]:checked, :scope > [name="action"]:checked')].map((box) => box.value);
    htmx.swap(target, html, { swapStyle: target.id === "list-body" ? "innerHTML" : "outerHTML", swapDelay: 0, settleDelay: 0 });
    for (const id of ticked) tick_again(rowOf(id)?.querySelector('[name="action"]'));
  }

  function tick_again(box) {
    if (!box) return; // it waits no more
    box.checked = true;
    box.dispatchEvent(new Event("change", { bubbles: true })); // batch.js
  }

  const rowOf = (id) => one(`.row[data-id="${CSS.escape(id)}"]`);
  // In a moment: what starts and ends meanwhile is fetched once, and not all open pages ask together.
  const soon = new Map(); // id -> timer
  function loadRow(id) {
    if (soon.has(id)) return;
    soon.set(id, setTimeout(() => {
      soon.delete(id);
      if (rowOf(id)) load(() => rowOf(id), `${rowOf(id).dataset.row}&open=${opened()}`);
    }, 100 + 200 * Math.random()));
  }
  // What comes meanwhile is asked for after the answer: of requests that take over from each other none is answered.
  let listAgain = false;
  async function loadList() {
    const address = one("#list-body").dataset.list;
    listAgain = loading.has(address);
    if (listAgain) return;
    const came = await load(() => one("#list-body"), address);
    if (listAgain) return loadList();
    if (came) count(false); // only with its answer is there something to count anew
  }
  const loadCard = () => load(() => deciding() ? null : one("#card"), `${one("#card").dataset.card}?part=card`);
  // Approvals so far. When what would run was edited, all of the card is another.
  async function loadVotes() {
    await load(() => one("#votes"), one("#votes").dataset.votes);
    if (one("#card form.decide [name=digest]")?.value !== one("#votes")?.dataset.digest) loadCard();
  }
  // All of the card only once its offer to deny late has run out.
  async function loadFate() {
    const came = await load(() => one("#outcome"), one("#outcome").dataset.fate);
    if (came && one("#card form.decide") && !one("#outcome[data-deniable]")) loadCard();
  }

  // What runs in a sandbox. Not under the pointer, nor what is being used or read out.
  const LIVE_MS = 3000;
  let looked = Date.now();
  const idle = () => one("#sandbox-live:not(:hover, :focus-within)");
  function look() {
    if (document.hidden || !idle() || Date.now() - looked < LIVE_MS) return;
    looked = Date.now();
    if (!loading.has(idle().dataset.live)) load(idle, idle().dataset.live);
  }

  // ---- what changed ----
  function changed(id, status) {
    const row = rowOf(id), card = one("#card");
    if (row && row.dataset.status !== status) loadRow(id);
    const items = card?.dataset.ids?.split(" ") || [];
    // A card that waits no more keeps what it says, and what is written on it; only its outcome moves on.
    const load = card?.dataset.status === "pending" ? loadCard : loadFate;
    if (items.includes(id) || (card?.dataset.id === id && one("#outcome").dataset.status !== status)) load();
  }

  // One in the background: its action ended with its start.
  function ended(command) {
    for (const shown of all(`[data-command${command ? `="${CSS.escape(command)}"` : ""}]`)) {
      shown.matches(".row") ? loadRow(shown.dataset.id) : loadFate();
    }
  }

  function reconcile() {
    for (const shown of all(".row, #card")) {
      const now = open.get(shown.dataset.id);
      const was = shown.matches("#card") ? one("#outcome").dataset.status : shown.dataset.status;
      if (now ? now !== was : ["pending", "approved", "running"].includes(was)) changed(shown.dataset.id, now || "ended");
    }
    count();
  }

  function count(mayLoad = true) {
    const waiting = [...open].filter(([, status]) => status === "pending").map(([id]) => id);
    document.dispatchEvent(new CustomEvent("sandgate:waiting", { detail: waiting })); // notices.js
    for (const place of all("[data-waiting]")) {
      place.textContent = waiting.length;
      if (place.classList.contains("count")) place.classList.toggle("waiting", waiting.length > 0);
    }
    const list = one("#list-body");
    if (!list) return;
    document.title = document.title.replace(/^Queue \(\d+\)/, `Queue (${waiting.length})`);
    const listed = new Set(all(".row").flatMap((row) => [row.dataset.id, ...(row.dataset.twins || "").split(" "), ...(row.dataset.items || "").split(" ")]));
    const fresh = waiting.filter((id) => !listed.has(id));
    if (mayLoad && fresh.length && one("[data-nothing]")) return loadList(); // nothing there that could move
    const more = one("[data-more]"); // those that wait longest are listed, and of the others only how many they are
    if (!more) return news(fresh.length, `Show ${fresh.length} new`);
    if (fresh.length > Number(more.textContent)) say(`${fresh.length} more wait`);
    more.textContent = fresh.length;
    news(waiting.some((id) => rowOf(id)) ? 0 : fresh.length, "Show the next");
  }

  function news(number, offer) {
    const link = one("[data-news]"), words = link.querySelector("span"), said = words.textContent;
    words.textContent = number ? offer : "";
    link.hidden = !number;
    one("[data-quiet-news]").hidden = Boolean(number);
    if (number && words.textContent !== said) say(`${number} new ${number === 1 ? "action waits" : "actions wait"}`);
  }

  // Colleagues who have a card open came or went: ids of actions, and of members.
  let lookers = {};
  function look_at(now) {
    const moved = Object.keys({ ...lookers, ...now }).filter((id) => `${lookers[id] || ""}` !== `${now[id] || ""}`);
    lookers = now;
    for (const id of moved) {
      if (rowOf(id)) loadRow(id);
      if (opened() === id) load(() => one("#looking"), one("#looking").dataset.looking);
    }
  }

  const say = (words) => { one("#said").textContent = words; };

  // ---- the socket ----
  function connect() {
    clearTimeout(timer);
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${body.dataset.socket}${opened() && `?card=${opened()}`}`);
    socket.onmessage = (event) => hear(JSON.parse(event.data), socket);
    socket.onclose = (event) => {
      if (event.code >= 4400) return location.reload(); // signed out, or no longer a reviewer here
      down();
    };
  }

  function hear(message, socket) {
    if ("snapshot" in message) {
      seq = message.snapshot;
      open.clear();
      for (const [id, status] of Object.entries(message.open)) open.set(id, status);
      up();
      ended(""); // while nobody heard
      return reconcile();
    }
    if ("looking" in message) return look_at(message.looking);
    if (message.seq <= seq) return;
    if (message.seq !== seq + 1) return socket.close(); // a gap: a new snapshot mends it
    seq = message.seq;
    if (message.subject === "command") return ended(message.id);
    if (message.subject === "halt") return load(() => one("#halts"), one("#halts").dataset.halts);
    if (message.subject !== "action") return;
    const { id, status } = message;
    if (status === "pending") {
      open.set(id, status);
      if (opened() === id && one("#card").dataset.status === status) loadVotes();
    }
    else if (status === "approved" || status === "running") { if (open.has(id)) open.set(id, status); }
    else open.delete(id);
    changed(id, status);
    count();
  }

  function up() {
    tries = 0;
    body.dataset.link = "up";
    for (const banner of all(".offline")) banner.hidden = true;
    explain();
  }

  // What the deciding buttons say of themselves when they are locked.
  function explain() {
    const why = body.dataset.link === "down" ? "offline-why" : "seen";
    for (const button of all("form.decide [name=verdict]")) {
      if (button.matches("[data-approve]") || why !== "seen") button.setAttribute("aria-describedby", why);
      else button.removeAttribute("aria-describedby");
    }
  }

  function down() {
    body.dataset.link = "down";
    const wait = Math.min(10, 2 ** tries++);
    for (const banner of all(".offline")) banner.hidden = false;
    explain();
    const wait_ms = wait * 1000 * (0.75 + Math.random() / 2); // apart from the other pages, which lost it at once too
    retryAt = Date.now() + wait_ms;
    timer = setTimeout(connect, wait_ms);
    tick();
  }

  // ---- times, by the server's clock ----
  function span(seconds) {
    const minutes = Math.floor(seconds / 60), hours = Math.floor(seconds / 3600);
    if (seconds < 60) return `${Math.max(0, Math.floor(seconds))} s`;
    if (minutes < 60) return `${minutes} min`;
    if (hours < 48) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
    return `${Math.floor(hours / 24)} days`;
  }

  function tick() {
    const now = Date.now() + offset;
    for (const time of all("time[data-since]")) {
      const seconds = (now - Date.parse(time.dateTime)) / 1000;
      const coarse = seconds >= 3600 ? seconds - (seconds % 3600) : seconds;
      time.textContent = `${span(coarse)} ${time.dataset.since}`.trim();
    }
    for (const time of all("time[data-left]")) {
      const seconds = (Date.parse(time.dateTime) - now) / 1000;
      time.textContent = `${span(seconds)} left`;
      time.parentElement.classList.toggle("soon", seconds < 900);
    }
    for (const place of all("[data-retry]")) place.textContent = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
    look();
    const moving = one('#outcome:is([data-status="running"], [data-command])');
    if (moving && !document.hidden && !loading.has(moving.dataset.fate)) loadFate();
  }

  async function copySecret(button) {
    await navigator.clipboard.writeText(button.closest(".panel").querySelector(".secret").textContent);
    button.querySelector("span").textContent = "Copied";
    say("Copied");
  }

  // Settings: whether there is anything to save.
  for (const bar of all(".savebar")) {
    const form = bar.closest("form"), values = () => new URLSearchParams(new FormData(form)).toString();
    const saved = "refused" in bar.dataset ? null : values(); // what was refused is not saved, whatever it is
    const compare = () => bar.toggleAttribute("data-clean", values() === saved);
    form.addEventListener("input", compare);
    form.addEventListener("reset", () => setTimeout(compare));
    compare();
  }
  const wrong = one('.settings [aria-invalid="true"], #exc-e');
  wrong?.focus({ preventScroll: true });
  wrong?.scrollIntoView({ block: "center" }); // with what is said below it, which the bar must not cover

  // Another form of the page would drop what is not saved yet.
  document.addEventListener("submit", (event) => {
    const note = one("[data-unsaved]");
    if (!note || !event.target.closest(".more") || one(".savebar").matches("[data-clean]")) return;
    event.preventDefault();
    event.target.append(note);
    note.hidden = false;
  });

  for (const button of all("[data-copy-secret]")) button.hidden = !navigator.clipboard; // needs HTTPS, or this machine
  document.addEventListener("click", (event) => {
    const copy = event.target.closest("[data-copy-secret]");
    if (copy) copySecret(copy);
    if (event.target.closest("[data-close]")) event.target.closest(".toast").remove();
    if (event.target.closest("[data-try-now]")) connect();
    if (event.target.closest("[data-news]") && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      loadList();
    }
  });
  document.addEventListener("htmx:afterRequest", () => { if (body.dataset.link === "up") reconcile(); }); // what came meanwhile
  setInterval(tick, 1000);
  tick();
  if (body.dataset.socket) connect();
})();

// Guards of the decision bar. Without this script the bar is a plain form below the whole text.
// Approve opens once everything that matters was on screen (reading.js), and no click counts in the first moments.
"use strict";

(() => {
  const QUIET_MS = 500;
  let quiet = 0, written = { id: "", reason: "", step: "" };

  const card = () => document.querySelector("#card");
  const form = () => document.querySelector("#card form.decide");

  function hush() {
    if (!card()) return;
    card().dataset.quiet = "";
    clearTimeout(quiet);
    quiet = setTimeout(() => delete card()?.dataset.quiet, QUIET_MS);
  }

  function setUp() {
    Reading.stop();
    hush();
    if (card()) Folds.fold(card());
    if (!form()) return card() && keepWritten();
    writeOn();
    if (form().querySelector("[data-approve]")) Reading.watch(card(), form(), showReading);
  }

  // ---- reading ----
  function part({ seen, of }, name) {
    return of ? [`${seen} of ${of} ${of === 1 ? name.slice(0, -1) : name}`] : [];
  }

  function showReading({ changes, lines, all }) {
    const bar = form().querySelector("#seen progress"), done = changes.of && !lines.of ? "Every change seen" : "Seen to the end";
    bar.hidden = false;
    bar.max = Math.max(1, changes.of + lines.of);
    bar.value = all ? bar.max : changes.seen + lines.seen;
    const parts = [...part(changes, "changes"), ...part(lines, "lines")];
    form().querySelector("[data-readto]").textContent = all ? done : `${parts.join(", ") || "Not"} seen, read on`;
    form().querySelector("#seen").classList.toggle("all", all);
    form().querySelector("[data-read-on]").classList.toggle("spent", all);
    if (all && card().dataset.seen !== "all") tellRead();
    card().dataset.seen = all ? "all" : "part";
    for (const button of form().querySelectorAll("[data-approve]")) button.setAttribute("aria-disabled", String(!all));
  }

  // So that it can be approved together with others. Nothing waits for it, and nothing is decided by it.
  async function tellRead() {
    if (!card().dataset.read) return; // a plan is approved by itself
    const { id } = card().dataset, sent = new FormData();
    for (const name of ["csrfmiddlewaretoken", "seen"]) sent.append(name, form().querySelector(`[name=${name}]`).value);
    try {
      const answer = await fetch(card().dataset.read, { method: "POST", body: sent, headers: { "HX-Request": "true" } });
      if (answer.ok) document.dispatchEvent(new CustomEvent("sandgate:read", { detail: id }));
    } catch (error) { console.warn(error); }
  }

  // ---- a reason on a card that another takes the place of ----
  function reasonNow() {
    const chip = form().querySelector("[name=quick]:checked")?.value, words = form().querySelector("[name=reason]").value.trim();
    return [chip, words].filter(Boolean).join(". ");
  }

  function forget() { written = { id: "", reason: "", step: "" }; }
  const isWritten = () => Boolean(written.reason) && written.id === card().dataset.id;

  // Its chip and its words as words.
  function writeOn() {
    if (isWritten()) form().querySelector("[name=reason]").value = written.reason;
    isWritten() && written.step === "deny" ? unfold() : fold();
  }

  // Somebody else's decision overtook it.
  function keepWritten() {
    const note = card().querySelector("[data-unsent]");
    if (!note || !isWritten()) return;
    note.querySelector("[data-unsent-reason]").textContent = written.reason;
    note.hidden = false;
    forget();
  }

  document.addEventListener("input", (event) => {
    if (form()?.contains(event.target)) written = { id: card().dataset.id, reason: reasonNow(), step: form().dataset.step };
  });
  // The answer to this page's own decision says itself what became of its reason.
  document.addEventListener("htmx:beforeSwap", forget);

  // ---- deny, in two steps ----
  function fold() {
    form().dataset.step = "choose";
    form().querySelector("[data-deny]").textContent = "Deny…";
    form().querySelector("[data-deny]").className = "btn deny";
    form().querySelector("[data-cancel]").hidden = true;
  }

  function takeBack() {
    fold();
    written.step = "choose";
    form().querySelector("[data-deny]").focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && form()?.dataset.step === "deny") takeBack();
  });

  function unfold() {
    form().dataset.step = "deny";
    form().querySelector("[data-deny]").textContent = "Deny";
    form().querySelector("[data-deny]").className = "btn danger";
    form().querySelector("[data-cancel]").hidden = false;
    form().querySelector("[name=reason]").focus();
  }

  function refusesNow(verdict) {
    if (document.body.dataset.link === "down" || "quiet" in card().dataset) return true;
    if (verdict === "approve" || verdict === "grant") return card().dataset.seen !== "all" || form().dataset.step !== "choose";
    if (form().dataset.step === "choose") return unfold(), true;
    form().querySelector("[data-reason-missing]").hidden = Boolean(reasonNow());
    return !reasonNow();
  }

  // Before htmx sees it, and whether or not htmx is there.
  document.addEventListener("submit", (event) => {
    if (event.target !== form()) return;
    if (!refusesNow(event.submitter?.value)) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-cancel]")) takeBack();
    const copy = event.target.closest("[data-copy]");
    if (copy && navigator.clipboard) {
      event.preventDefault();
      copyBytes(copy);
    }
  });

  async function copyBytes(link) {
    const text = await (await fetch(link.href)).text();
    await navigator.clipboard.writeText(text);
    const words = link.querySelector(".t");
    words.textContent = "Copied";
    setTimeout(() => { words.textContent = "Copy bytes"; }, 2000);
  }

  for (const lost of ["htmx:sendError", "htmx:responseError", "htmx:timeout"]) {
    document.addEventListener(lost, (event) => {
      if (event.target === form()) form().querySelector(".unsaved").hidden = false;
    });
  }
  // ---- focus: where what was asked for stands, without moving the page ----
  const stand = (selector) => card()?.querySelector(selector)?.focus({ preventScroll: true });

  // What was pressed has put the text away: the head of what became of it is what is read next.
  function showOutcome() {
    stand("#outcome h2");
    card()?.querySelector("#outcome .panel-head")?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("htmx:afterSwap", (event) => {
    if (!event.detail.requestConfig?.path.match(/\/decide(-plan)?$/)) return;
    card()?.querySelector("#outcome").hidden ? stand(".refusal, #act-title") : showOutcome();
  });
  document.addEventListener("htmx:load", (event) => { if (event.target === card()) setUp(); });
  addEventListener("focus", hush); // the click that brings the window back must not decide
  addEventListener("resize", hush);
  setUp();
  if (document.activeElement === document.body) stand("#act-title");
})();

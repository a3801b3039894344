// The bar below the queue's list: there once something is ticked. Approving several takes cards that were read to their
// end; the server knows which, this only says so before. Without this script the bar always stands there.
"use strict";

(() => {
  const QUIET_MS = 500;
  let quietUntil = 0;
  const form = () => document.querySelector("#batch");
  const ticked = () => [...document.querySelectorAll('.row input[name="action"]:checked')];

  function show() {
    if (!form()) return;
    const chosen = ticked(), unread = chosen.filter((box) => !("read" in box.dataset)).length, many = chosen.length;
    form().hidden = !many;
    form().querySelector("[data-batch-why]").textContent = unread ? `${unread} not read yet` : `${many} selected`;
    form().querySelector("[data-batch-deny]").textContent = `Deny ${many}…`;
    form().querySelector("[data-batch-approve] span").textContent = `Approve ${many}`;
    form().querySelector("[data-batch-approve]").setAttribute("aria-disabled", String(unread > 0));
  }

  const hush = () => { quietUntil = performance.now() + QUIET_MS; };

  document.addEventListener("change", (event) => { if (event.target.matches('.row input[name="action"]')) show(); });
  document.addEventListener("keydown", (event) => { // Enter in a box would press the first button of its form
    if (event.key === "Enter" && event.target.matches('.row input[name="action"]')) event.preventDefault();
  });
  document.addEventListener("submit", (event) => {
    if (event.target !== form()) return;
    const approves = event.submitter?.matches("[data-batch-approve]");
    const shut = approves && event.submitter.getAttribute("aria-disabled") === "true";
    if (shut || document.body.dataset.link === "down" || performance.now() < quietUntil) event.preventDefault();
  }, true);
  document.addEventListener("sandgate:read", (event) => {
    const box = document.querySelector(`.row input[value="${CSS.escape(event.detail)}"]`);
    if (box) box.dataset.read = "";
    show();
  });
  document.addEventListener("htmx:load", show); // rows come and go
  addEventListener("focus", hush);
  show();
})();

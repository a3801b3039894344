// A plan's ticks: the button says how many would run, and asks why those unticked are left out. Without this script the
// button says "ticked", and the question always stands there.
"use strict";

(() => {
  const form = () => document.querySelector("#decide-plan");
  const boxes = () => [...document.querySelectorAll('.plan .item input[name="item"]')];

  function show() {
    if (!form()?.querySelector("[data-ticked]")) return;
    const ticked = boxes().filter((box) => box.checked).length;
    form().querySelector("[data-ticked]").textContent = ticked;
    form().querySelector("[data-left-out]").hidden = ticked === boxes().length;
  }

  document.addEventListener("change", (event) => { if (event.target.matches('.plan input[name="item"]')) show(); });
  // Before the bar's own guard: nothing is sent that the server would refuse for want of a reason or of an item.
  window.addEventListener("submit", (event) => {
    if (event.target !== form() || event.submitter?.value !== "approve") return;
    const ticked = boxes().filter((box) => box.checked).length, why = form().querySelector("[name=left_out_reason]");
    if (ticked && (ticked === boxes().length || why.value.trim())) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    (ticked ? why : boxes()[0]).focus();
  }, true);
  document.addEventListener("htmx:load", show);
  show();
})();

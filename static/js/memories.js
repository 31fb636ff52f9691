// Comforts of the memory pages: sliders that show what they will save, +/- keys, editing in place by keys, counting the selection, the next review item, the live curve.
"use strict";
(() => {
  // --- sliders: the bar under a slider and the figure beside it follow the thumb ---------------------------------------
  document.addEventListener("input", (event) => {
    const slider = event.target;
    if (!(slider instanceof HTMLInputElement) || slider.type !== "range") return;
    const bar = slider.parentElement.querySelector("progress");
    if (bar) bar.value = Number(slider.value);
    const figure = document.querySelector(`output[for="${CSS.escape(slider.id)}"]`);
    if (figure) figure.textContent = Number(slider.value).toFixed(2);
  });
  document.addEventListener("keydown", (event) => {
    const slider = event.target;
    if (!(slider instanceof HTMLInputElement) || slider.type !== "range" || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = { "+": 0.1, "=": 0.1, "-": -0.1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const value = Math.min(Number(slider.max), Math.max(Number(slider.min), Number(slider.value) + step));
    slider.value = value.toFixed(2);
    slider.dispatchEvent(new Event("input", { bubbles: true }));
    slider.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // --- editing in place: Ctrl-Enter saves, Escape leaves it, and what was opened has the cursor ----------------------------
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || !event.target.closest) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.matches(".mem-edit textarea, main form textarea[name=content]")) {
      event.preventDefault();
      event.target.form.requestSubmit();
    }
    if (event.key !== "Escape") return;
    const leave = event.target.closest(".mem-edit")?.querySelector("[data-cancel]");
    if (leave) leave.click();
    const adding = event.target.closest("details.mem-add[open]");
    if (adding) { adding.open = false; adding.querySelector("summary").focus(); }
  });
  document.addEventListener("toggle", (event) => {
    if (event.target.matches("details.mem-add[open]")) event.target.querySelector("input").focus();
  }, true);

  // --- selection ---------------------------------------------------------------------------------------------------------
  const label = document.querySelector("[data-picked]");
  function countPicked() {
    if (!label) return;
    const picked = document.querySelectorAll("[data-pick]:checked").length;
    label.textContent = picked ? label.dataset.some.replace("%n%", picked) : label.dataset.none;
  }
  document.addEventListener("input", (event) => { if (event.target.matches("[data-pick]")) countPicked(); });
  document.addEventListener("change", (event) => { if (event.target.matches("[data-pick]")) countPicked(); });
  countPicked();

  // --- swapped rows: the current row stays current; a decided review item hands over to the next one --------------------
  // Other parts of the page are swapped meanwhile (counts, news), so a row waits for its own settling and for no other.
  let wasCurrent = "";
  document.body.addEventListener("htmx:beforeSwap", (event) => {
    const target = event.detail.target;
    if (target && target.classList && target.classList.contains("is-current")) wasCurrent = target.id;
    if (!target || !target.matches || !target.matches("[data-review]") || event.detail.xhr.status >= 300) return;
    const next = target.nextElementSibling || target.previousElementSibling;
    if (next && next.matches("[data-review]")) {
      setTimeout(() => { next.classList.add("is-current"); next.scrollIntoView({ block: "nearest" }); const link = next.querySelector("a[href]"); if (link) link.focus({ preventScroll: true }); }, 0);
    }
  });
  document.body.addEventListener("htmx:afterSettle", (event) => {
    const row = wasCurrent && event.target.id === wasCurrent ? event.target : null;
    if (row) {
      wasCurrent = "";
      row.classList.add("is-current");
      const inside = row.contains(document.activeElement) || document.activeElement?.closest?.("dialog");
      const link = row.querySelector("textarea, [data-open-row]");
      if (!inside && link) link.focus({ preventScroll: true });
    }
    countPicked();
    document.querySelectorAll("[data-toast]").forEach((toast) => {
      toast.removeAttribute("data-toast");
      setTimeout(() => toast.remove(), 12000);
    });
  });

  // --- the forgetting curve follows the slider: the server draws, this puts it in place ------------------------------------
  document.body.addEventListener("htmx:afterSwap", (event) => {
    const holder = document.querySelector("[data-curve]");
    if (!holder || !event.detail.elt || !window.hub || !window.hub.drawFigure) return;
    const place = document.querySelector(`[data-figure="${holder.dataset.curve}"]`);
    if (place) window.hub.drawFigure(place, JSON.parse(holder.querySelector("script").textContent));
    holder.remove();
  });
  document.addEventListener("input", (event) => {
    const follower = event.target.id && document.querySelector(`[data-follows="${CSS.escape(event.target.id)}"]`);
    if (follower) follower.value = event.target.value;
  });

  // --- slider forms that only preview (search bench, curve) submit by themselves -------------------------------------------
  document.addEventListener("change", (event) => {
    const form = event.target.form;
    if (form && form.matches("[data-submit-on-slide]") && event.target.type === "range") form.requestSubmit();
  });
})();

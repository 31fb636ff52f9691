// News by server-sent events while the tab is seen; without them the same element polls by itself.
"use strict";
(() => {
  let source = null;
  let address = "";
  function listen() {
    const place = document.querySelector("[data-live]");
    const wanted = place && !document.hidden ? place.dataset.live : "";
    if (wanted === address && source) return;
    if (source) source.close();
    source = null;
    address = wanted;
    if (!wanted || !window.EventSource) return;
    source = new EventSource(wanted);
    source.addEventListener("news", () => {
      const target = document.querySelector("[data-live]");
      if (target && window.htmx) window.htmx.trigger(target, "news");
    });
  }
  document.addEventListener("visibilitychange", listen);
  document.addEventListener("htmx:afterSettle", listen);
  addEventListener("pagehide", () => { if (source) source.close(); });
  listen();
  // Nothing polls while nobody looks.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const trigger = event.detail.elt.getAttribute("hx-trigger") || "";
    if (document.hidden && trigger.includes("every")) event.preventDefault();
  });
})();

// Ctrl-K: jump to a page, memory, session or action. The list comes ready from the server.
"use strict";
(() => {
  const dialog = document.getElementById("palette");
  if (!dialog) return;
  const input = document.getElementById("palette-input");
  const list = document.getElementById("palette-list");
  const address = document.body.dataset.palette;
  let waiting = null;
  let asked = 0;

  const options = () => [...list.querySelectorAll('[role="option"]')];
  function choose(index) {
    const all = options();
    all.forEach((option, i) => option.setAttribute("aria-selected", String(i === index)));
    if (all[index]) {
      input.setAttribute("aria-activedescendant", all[index].id);
      all[index].scrollIntoView({ block: "nearest" });
    } else {
      input.removeAttribute("aria-activedescendant");
    }
  }
  async function load() {
    const turn = ++asked;
    try {
      const reply = await fetch(`${address}?q=${encodeURIComponent(input.value)}&from=${encodeURIComponent(location.pathname)}`, { headers: { "X-Requested-With": "fetch" } });
      if (!reply.ok || turn !== asked) return;
      list.innerHTML = await reply.text();
      choose(0);
    } catch {
      list.textContent = list.dataset.error;
    }
  }
  dialog.addEventListener("hub:open", () => { input.value = ""; input.focus(); load(); });
  input.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(load, 120); });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const all = options();
    const at = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
    if (event.key === "ArrowDown") { event.preventDefault(); choose(Math.min(all.length - 1, at + 1)); }
    if (event.key === "ArrowUp") { event.preventDefault(); choose(Math.max(0, at - 1)); }
    if (event.key === "Enter" && all[at]) { event.preventDefault(); all[at].click(); }
  });
})();

// What every page shares: menus, theme, toasts, copy buttons, keys, CSRF for htmx. Everything here is a comfort: the page works without it.
"use strict";
(() => {
  const html = document.documentElement;
  const body = document.body;
  const csrf = body.dataset.csrf || "";

  // --- htmx -------------------------------------------------------------------------------------------------------
  body.addEventListener("htmx:configRequest", (event) => {
    event.detail.headers["X-CSRFToken"] = csrf;
  });
  const announceFailure = (event) => {
    const xhr = event.detail.xhr;
    const id = xhr && xhr.getResponseHeader && xhr.getResponseHeader("X-Request-Id");
    const words = document.getElementById("shell-words");
    toast((words ? words.dataset.failed : "Failed") + (id ? ` (${id})` : ""), "error");
  };
  body.addEventListener("htmx:responseError", announceFailure);
  body.addEventListener("htmx:sendError", announceFailure);

  // --- tabs: on a narrow screen the current one may lie outside the row that scrolls ----------------------------------
  document.querySelectorAll(".mh-tabs [aria-current]").forEach((tab) => {
    const row = tab.parentElement;
    row.scrollLeft = tab.offsetLeft - row.offsetLeft - (row.clientWidth - tab.offsetWidth) / 2;
  });

  // --- toasts: window.hub.toast(text, tone) ------------------------------------------------------------------------
  function toast(text, tone = "info", seconds = 8) {
    const box = document.createElement("div");
    box.className = `mh-message is-${tone}`;
    const line = document.createElement("span");
    line.className = "mh-message-text";
    line.textContent = text;
    box.append(line);
    document.getElementById("toasts").append(box);
    setTimeout(() => box.remove(), seconds * 1000);
  }
  window.hub = { toast };

  // --- menus: one open at a time, closed by Esc and by a click elsewhere ---------------------------------------------
  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.mh-menu[open]").forEach((menu) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    document.querySelectorAll("details.mh-menu[open]").forEach((menu) => {
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  });

  // --- theme: at once, and kept by the same form that works without scripts ------------------------------------------
  document.querySelectorAll("[data-theme-menu] form").forEach((form) => {
    form.addEventListener("submit", (event) => {
      const value = event.submitter && event.submitter.value;
      if (!value) return;
      event.preventDefault();
      if (value === "system") html.removeAttribute("data-theme");
      else html.setAttribute("data-theme", value);
      form.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", String(b.value === value)));
      const data = new URLSearchParams(new FormData(form));
      data.set("theme", value);
      fetch(form.action, { method: "POST", body: data, headers: { "X-CSRFToken": csrf }, redirect: "manual" }).catch(() => {});
      document.dispatchEvent(new CustomEvent("hub:theme"));
      form.closest("details").open = false;
    });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new CustomEvent("hub:theme")));

  // --- copy ---------------------------------------------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = button.dataset.copy ? document.querySelector(button.dataset.copy) : button.parentElement.querySelector("pre");
    const text = source.value !== undefined ? source.value : source.textContent;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const range = document.createRange();
      range.selectNodeContents(source);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      document.execCommand("copy");
    }
    const before = button.textContent;
    button.textContent = "✓";
    setTimeout(() => { button.textContent = before; }, 1200);
  });

  // --- forms: submit a select at once; ask before leaving a dirty form is left to the browser ---------------------------
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
    if (event.target.matches("[data-check-all]")) {
      document.querySelectorAll(event.target.dataset.checkAll).forEach((box) => {
        box.checked = event.target.checked;
        box.dispatchEvent(new Event("input", { bubbles: true }));
      });
    }
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-print]");
    if (button) window.print();
    const closer = event.target.closest("[data-dismiss]");
    if (closer) closer.closest(closer.dataset.dismiss).remove();
  });

  // --- keys -----------------------------------------------------------------------------------------------------------
  // A table or list with [data-rows] is walked by j and k; the current row's link opens with Enter; [data-key="a"] inside it
  // is pressed by its letter; [data-page-key] is the page's own.
  const rows = () => [...document.querySelectorAll("[data-rows] > tr, [data-rows] > [data-row]")].filter((row) => row.offsetParent);
  const current = () => document.querySelector("[data-rows] > .is-current");
  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(current());
    const next = all[Math.min(all.length - 1, Math.max(0, at + step))];
    all.forEach((row) => row.classList.toggle("is-current", row === next));
    next.scrollIntoView({ block: "nearest" });
    const target = next.querySelector("[data-open-row], a[href]");
    if (target) target.focus({ preventScroll: true });
  }
  function openDialog(name) {
    const dialog = document.getElementById(name);
    if (dialog && !dialog.open) {
      dialog.showModal();
      dialog.dispatchEvent(new CustomEvent("hub:open"));
    }
  }
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-open]");
    if (opener && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      openDialog(opener.dataset.open);
    }
    if (event.target.matches && event.target.matches("dialog.mh-dialog[open]")) event.target.close();
  });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      openDialog("palette");
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], dialog[open]")) return;
    const row = current();
    switch (event.key) {
      case "/": {
        const box = document.querySelector("[data-search-box]");
        event.preventDefault();
        if (box) { box.focus(); box.select(); } else if (body.dataset.search) location.href = body.dataset.search + "?focus=search";
        break;
      }
      case "?": event.preventDefault(); openDialog("keys"); break;
      case "j": move(1); break;
      case "k": move(-1); break;
      default: {
        const scope = row || rows()[0];
        const letter = CSS.escape(event.key);
        const button = (scope && scope.querySelector(`[data-key="${letter}"]`)) || document.querySelector(`[data-page-key="${letter}"]`);
        if (button && event.key.length === 1) { event.preventDefault(); button.click(); }
      }
    }
  });
  if (new URLSearchParams(location.search).get("focus") === "search") {
    const box = document.querySelector("[data-search-box]");
    if (box) box.focus();
  }
})();

// Runs before the page is drawn: marks that scripts work, and tells the server the browser's time zone (unless one was chosen).
"use strict";
document.documentElement.classList.add("has-js");
(() => {
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  const known = document.cookie.split("; ").find((pair) => pair.startsWith("memoryhub_browser_zone="));
  if (zone && (!known || decodeURIComponent(known.split("=")[1]) !== zone)) {
    document.cookie = `memoryhub_browser_zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax`;
  }
})();

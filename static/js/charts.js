// Draws every [data-figure] with plotly. The server sends traces with colour names ("accent", "teal", ...) and a bare layout;
// the one theme below gives them colours from the page's CSS variables, so light and dark match the rest.
"use strict";
(() => {
  const config = { displaylogo: false, displayModeBar: false, showSendToCloud: false, plotlyServerURL: "", responsive: true, locale: document.documentElement.lang };
  const places = [...document.querySelectorAll("[data-figure]")];
  if (!places.length || !window.Plotly) return;
  const chinese = document.documentElement.lang.startsWith("zh");
  if (chinese) {
    const month = (n) => `${n + 1}月`;
    const days = ["日", "一", "二", "三", "四", "五", "六"];
    const months = [...Array(12).keys()].map(month);
    Plotly.register({ moduleType: "locale", name: document.documentElement.lang, dictionary: {}, format: {
      days: days.map((d) => `星期${d}`), shortDays: days.map((d) => `周${d}`), months, shortMonths: months,
      date: "%Y年%-m月%-d日", decimal: ".", thousands: ",", dateTime: "%Y年%-m月%-d日 %H:%M", year: "%Y年", month: "%Y年%-m月", dayMonth: "%-m月%-d日", dayMonthYear: "%Y年%-m月%-d日" } });
  }

  // CSS colours may be written in a form that plotly cannot read: let the browser turn them into r, g, b.
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  function rgba(value, alpha) {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = value;
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b] = probe.getImageData(0, 0, 1, 1).data;
    return `rgba(${r},${g},${b},${alpha === undefined ? 1 : alpha})`;
  }
  function palette() {
    const css = getComputedStyle(document.documentElement);
    const read = (name) => css.getPropertyValue(`--mh-${name}`).trim();
    const dark = css.colorScheme.includes("dark");
    return {
      dark,
      accent: rgba(read("accent")), teal: rgba(read("teal")), grey: rgba(read("weak")), text: rgba(read("text")), weak: rgba(read("weak")),
      line: rgba(read("border")), surface: rgba(read("surface")), strong: rgba(read("strong")),
      good: dark ? "rgb(86,190,150)" : "rgb(28,120,92)", bad: dark ? "rgb(240,128,112)" : "rgb(178,62,44)", warn: dark ? "rgb(226,170,86)" : "rgb(176,110,20)",
      violet: dark ? "rgb(196,140,232)" : "rgb(134,72,176)",
    };
  }
  const soft = (color, alpha) => color.replace(/rgba?\((\d+),\s*(\d+),\s*(\d+).*\)/, `rgba($1,$2,$3,${alpha})`);

  function themedTrace(trace, colors) {
    const color = colors[trace.meta && trace.meta.color] || colors.accent;
    const quiet = trace.meta && trace.meta.color === "grey";
    const out = { ...trace };
    if (trace.type === "bar") {
      out.marker = { ...(trace.marker || {}), color: soft(color, quiet ? 0.45 : 0.85), line: { width: 0 } };
      if (out.marker.pattern) out.marker.pattern = { ...out.marker.pattern, fgcolor: colors.surface, bgcolor: soft(color, 0.85), size: 5, solidity: 0.25 };
      if (Array.isArray(trace.meta && trace.meta.colors)) out.marker.color = trace.meta.colors.map((name) => soft(colors[name] || color, 0.85));
    } else {
      out.line = { width: quiet ? 1.5 : 2, ...(trace.line || {}), color };
      if (trace.fill) out.fillcolor = soft(color, quiet ? 0.16 : 0.2);
      if (trace.mode && trace.mode.includes("markers")) out.marker = { size: 6, ...(trace.marker || {}), color };
    }
    return out;
  }
  function themedLayout(layout, colors) {
    const axis = (given, vertical) => ({
      automargin: true, zeroline: false, tickangle: 0, linecolor: colors.line, tickcolor: colors.line, tickfont: { color: colors.weak }, gridcolor: vertical ? colors.line : "rgba(0,0,0,0)", fixedrange: true,
      ...(given || {}),
    });
    const out = {
      margin: { l: 8, r: 10, t: 8, b: 8 }, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 12, color: colors.weak },
      hoverlabel: { bgcolor: colors.surface, bordercolor: colors.line, font: { color: colors.text } },
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal", font: { color: colors.text } }, hovermode: "x unified", bargap: 0.28, separators: ".,",
      ...layout,
    };
    Object.keys(layout).concat(["xaxis", "yaxis"]).filter((key) => /^[xy]axis\d*$/.test(key)).forEach((key) => {
      out[key] = axis(layout[key], (layout[key] && layout[key].showgrid) || (key[0] === "y" && !(layout[key] && layout[key].showgrid === false)));
    });
    (out.shapes || []).forEach((shape) => { shape.line = { width: 1, dash: "dot", ...(shape.line || {}), color: colors[(shape.meta || {}).color] || colors.weak }; delete shape.meta; });
    (out.annotations || []).forEach((note) => { note.font = { size: 12, ...(note.font || {}), color: colors.text }; note.bgcolor = soft(colors.surface, 0.8); note.borderpad = 2; });
    return out;
  }
  function draw(place, figure) {
    const colors = palette();
    const copy = structuredClone(figure);
    const layout = themedLayout(copy.layout || {}, colors);
    layout.height = place.clientHeight || 300;
    const room = Math.max(2, Math.floor(place.clientWidth / 90)); // labels that fit beside each other
    if (layout.xaxis.nticks > room) layout.xaxis.nticks = room;
    return Plotly.react(place, copy.data.map((trace) => themedTrace(trace, colors)), layout, config);
  }
  const figures = new Map();
  function drawAll() {
    figures.forEach((figure, place) => draw(place, figure));
  }
  places.forEach((place) => {
    const source = document.getElementById(place.dataset.figure);
    if (source) figures.set(place, JSON.parse(source.textContent));
  });
  drawAll();
  document.addEventListener("hub:theme", drawAll);
  // Paper has another size than the screen, and is laid out after this event: the page's stylesheet says how large a chart is there.
  addEventListener("beforeprint", () => figures.forEach((figure, place) => {
    const css = getComputedStyle(place);
    const width = Number(css.getPropertyValue("--mh-print-width"));
    const height = Number(css.getPropertyValue("--mh-print-height"));
    if (width && height) Plotly.relayout(place, { autosize: false, width, height });
  }));
  addEventListener("afterprint", drawAll);
  // window.hub.drawFigure(element, figure) redraws one place, e.g. while a slider moves.
  window.hub = Object.assign(window.hub || {}, { drawFigure: (place, figure) => { figures.set(place, figure); return draw(place, figure); } });
})();

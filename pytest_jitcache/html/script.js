"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const list = document.getElementById("functions");
  const rows = [...list.querySelectorAll("details.function")];

  // the theme
  const theme = document.getElementById("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = getComputedStyle(document.documentElement).getPropertyValue("--paper").trim() === "#16181b";
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    draw();
  });

  // the table: sorted by a column, filtered by words
  const tools = document.getElementById("tools");
  tools.hidden = false;
  const buttons = [...document.querySelectorAll(".columns button")];
  let down = true;
  for (const button of buttons) {
    button.disabled = false;
    button.addEventListener("click", () => {
      down = button.getAttribute("aria-pressed") === "true" ? !down : button.dataset.key !== "name";
      for (const other of buttons) other.setAttribute("aria-pressed", String(other === button));
      const key = button.dataset.key;
      const value = (row) => (key === "name" ? row.dataset.name : Number(row.dataset[key]));
      const order = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
      rows.sort((a, b) => (down ? order(b, a) : order(a, b)));
      list.append(...rows);
    });
  }
  const filter = document.getElementById("filter");
  const count = document.getElementById("count");
  const vain = document.getElementById("wasted");
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.dataset.text;
      row.hidden = !words.every((word) => text.includes(word)) || (vain.checked && row.dataset.wasted === "0");
      shown += !row.hidden;
    }
    count.textContent = `${shown} of ${rows.length}`;
  };
  filter.addEventListener("input", apply);
  vain.addEventListener("change", apply);
  apply();
  const open = (number) => {
    const row = document.getElementById(`function-${number}`);
    if (!row) return;
    row.hidden = false;
    row.open = true;
    row.scrollIntoView({ block: "center" });
    row.querySelector("summary").focus();
  };
  for (const link of document.querySelectorAll("a[data-function]")) {
    link.addEventListener("click", (event) => { event.preventDefault(); open(link.dataset.function); });
  }

  // the timeline
  const box = document.getElementById("timeline");
  if (!box || !data.spans.length) return;
  box.querySelector("svg")?.remove();
  const canvas = document.createElement("canvas");
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  box.append(canvas, tip);
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", box.dataset.label);
  const lane = 44, margin = 150, bottom = 22;
  const stages = { trace: 0, lower: 1, compile: 2 };
  let from = 0, to = data.length, chosen = null;
  const reset = document.getElementById("whole");
  reset.hidden = false;
  reset.addEventListener("click", () => zoom(0, data.length));

  function zoom(a, b) {
    const least = data.length / 1e6;
    from = Math.max(0, Math.min(a, data.length - least));
    to = Math.min(data.length, Math.max(b, from + least));
    box.dataset.from = from.toFixed(6);
    box.dataset.to = to.toFixed(6);
    draw();
  }
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  let width = 0, scale = 1;

  function hatch(context, ratio) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8 * ratio;
    const pen = tile.getContext("2d");
    pen.fillStyle = colour("card");
    pen.fillRect(0, 0, tile.width, tile.height);
    pen.strokeStyle = colour("vain");
    pen.lineWidth = 3 * ratio;
    pen.beginPath();
    for (const shift of [-8, 0, 8]) {
      pen.moveTo((shift - 1) * ratio, 9 * ratio);
      pen.lineTo((shift + 9) * ratio, -1 * ratio);
    }
    pen.stroke();
    return context.createPattern(tile, "repeat");
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    width = box.clientWidth - 16;
    const height = data.lanes.length * lane + bottom;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    const pattern = hatch(context, ratio);
    context.scale(ratio, ratio);
    scale = (width - margin) / (to - from);
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = colour("soft");
    data.lanes.forEach((name, number) => {
      context.fillText(name.length > 22 ? `${name.slice(0, 21)}…` : name, 2, number * lane + 20);
    });
    const fills = { trace: colour("trace"), lower: colour("lower"), compile: colour("compile") };
    const last = new Map();  // what is smaller than a pixel is drawn once for each pixel
    for (const [stage, number, start, seconds, , , wasted] of data.spans) {
      if (start > to || start + seconds < from) continue;
      const left = margin + Math.max(0, (start - from) * scale);
      const right = margin + Math.min(width - margin, (start + seconds - from) * scale);
      const row = number * 3 + stages[stage];
      if (right - left < 1) {
        const pixel = Math.floor(left);
        if (last.get(row) === pixel && !wasted) continue;
        last.set(row, pixel);
      }
      context.fillStyle = wasted ? pattern : fills[stage];
      context.fillRect(left, number * lane + 4 + stages[stage] * 12, Math.max(1, right - left), 11);
    }
    context.fillStyle = colour("soft");
    for (let tick = 0; tick <= 4; tick++) {
      const at = from + ((to - from) * tick) / 4;
      const text = `${Number(at.toPrecision(3))} s`;
      const x = margin + ((width - margin) * tick) / 4;
      context.fillText(text, tick === 4 ? x - context.measureText(text).width : x, height - 6);
    }
    if (chosen) {
      context.fillStyle = "rgba(128,128,128,.25)";
      context.fillRect(Math.min(chosen[0], chosen[1]), 0, Math.abs(chosen[1] - chosen[0]), height - bottom);
    }
  }
  function at(x, y) {
    const number = Math.floor(y / lane), stage = Math.floor((y - number * lane - 4) / 12);
    const when = from + (x - margin) / scale, near = 2 / scale;
    let best = null;
    for (const span of data.spans) {
      if (span[1] !== number || stages[span[0]] !== stage) continue;
      if (span[2] - near <= when && when <= span[2] + span[3] + near && (!best || span[3] <= best[3])) best = span;
    }
    return best;
  }
  const place = (event) => {
    const edge = canvas.getBoundingClientRect();
    return [event.clientX - edge.left, event.clientY - edge.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    chosen = [place(event)[0], place(event)[0]];
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event);
    if (chosen) {
      chosen[1] = x;
      draw();
      return;
    }
    const span = at(x, y);
    tip.hidden = !span;
    if (!span) return;
    const one = data.functions[span[4]];
    tip.textContent = [
      `${span[0]} ${one ? one.name : span[5]}  ${(span[3] * 1000).toFixed(1)} ms${span[6] ? "  in vain" : ""}`,
      ...(span[7] ? [span[7]] : []), ...(one && one.cause && span[6] ? [one.cause] : []), ...(one ? [one.place] : []),
    ].join("\n");
    tip.style.left = `${Math.min(x + 12, Math.max(0, width - 260))}px`;
    tip.style.top = `${y + 18}px`;
  });
  canvas.addEventListener("pointerup", (event) => {
    const [x, y] = place(event), [begin] = chosen || [x];
    chosen = null;
    if (Math.abs(x - begin) > 5) {
      const when = (pixel) => from + (Math.max(margin, pixel) - margin) / scale;
      zoom(when(Math.min(begin, x)), when(Math.max(begin, x)));
    } else {
      draw();
      const span = at(x, y);
      if (span && span[4] !== null) open(span[4]);
    }
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("keydown", (event) => {
    const part = (to - from) / 4;
    const steps = { ArrowLeft: [-part, -part], ArrowRight: [part, part], "+": [part, -part], "-": [-part, part] };
    if (event.key === "Escape") zoom(0, data.length);
    else if (steps[event.key]) zoom(from + steps[event.key][0], to + steps[event.key][1]);
    else return;
    event.preventDefault();
  });
  window.addEventListener("resize", draw);
  zoom(0, data.length);
})();

// The views of the glass box: each makes elements of what the server found. token: the token of the answer.

import { make } from "./dom.js";
import { model } from "./server.js";
import { setting } from "./answers.js";

const percent = (share) =>
  share >= 0.9995 ? "100%" : share >= 0.1 ? `${(100 * share).toFixed(1)}%` : `${(100 * share).toFixed(2)}%`;

// Makes spaces and line ends visible, for a token that is shown alone.
export const visible = (text) =>
  text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replace(/^ | $/g, "·") || "(no text)";

function bar(share) {
  const fill = make("i");
  fill.style.width = `${100 * share}%`;
  return make("td", { className: "bar" }, fill, make("span", {}, share === 0 ? "–" : percent(share)));
}

const head = (...names) => make("thead", {}, make("tr", {},
  ...names.map((name) => make("th", { scope: "col" }, name))));

// The likeliest tokens, and their probabilities after each step of sampling.
function showChoices(found, token, use) {
  const rows = found.choices.map((one) => make("tr", { className: one.token === token.id ? "taken" : "" },
    make("td", { className: "number" }, `${one.rank + 1}`),
    make("td", {}, make("button", {
      type: "button", className: "chip", title: `token ${one.token}, logit ${one.logit}`,
      "aria-label": `Continue with ${visible(one.text)} instead`, onclick: () => use(one), disabled: !use,
    }, visible(one.text))),
    bar(one.probability), bar(one.after_temperature), bar(one.after_top_k), bar(one.after_top_p)));
  const temperature = setting("temperature");
  return [
    make("p", {}, "The likeliest tokens at this place."
      + (use ? " Click another one: a new conversation continues from it." : "")),
    make("p", { className: "soft" }, `Temperature ${temperature}; top-k keeps ${found.kept_top_k}, top-p then keeps `
      + `${found.kept_top_p}. The marked row is the token of this answer.`),
    make("table", { "aria-label": "The likeliest tokens at this place" },
         head("", "token", "model", `temp. ${temperature}`, `top-k ${setting("top_k")}`, `top-p ${setting("top_p")}`),
         make("tbody", {}, ...rows)),
  ];
}

// Every head of every layer: a row with one attention probability per token.
function showAttention(found, token) {
  const rows = found.layers.flatMap(({ layer, heads }) =>
    heads.map((shares, index) => ({ layer, index, shares })));
  if (rows.length === 0) return [make("p", {}, "No layer of this model has attention.")];
  const n = found.texts.length;
  const width = Math.max(4, Math.min(16, Math.floor(480 / n))), height = rows.length > 60 ? 8 : 14;
  const size = { width: n * width, height: rows.length * height };
  const canvas = make("canvas", { ...size, tabIndex: 0 });
  const readout = make("p", { className: "readout", role: "status" });
  const shaded = make("div", { className: "shaded" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Attention of ${rows.length} heads over ${n} tokens; arrow keys move`);
  const context = canvas.getContext("2d");
  const heat = getComputedStyle(document.documentElement).getPropertyValue("--heat");
  const colour = (share, most = 1) => `rgba(${heat}, ${most * Math.sqrt(share)})`;  // so that small shares are visible
  const spans = found.texts.map((text) => make("span", {}, text));
  shaded.append(...spans);
  let at = { row: 0, column: n - 1 };

  // All cells, painted once: a long text has hundreds of thousands.
  const cells = make("canvas", size);
  const painter = cells.getContext("2d");
  rows.forEach(({ layer, shares }, y) => {
    shares.forEach((share, x) => {
      painter.fillStyle = colour(share);
      painter.fillRect(x * width, y * height, width, height - 1);
    });
    if (y > 0 && rows[y - 1].layer !== layer) {
      painter.fillStyle = "rgba(128, 128, 128, 0.8)";
      painter.fillRect(0, y * height - 1, cells.width, 1);
    }
  });

  function draw() {
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.drawImage(cells, 0, 0);
    context.strokeStyle = getComputedStyle(document.body).color;
    context.strokeRect(at.column * width + 0.5, at.row * height + 0.5, width - 1, height - 2);
  }
  function choose(row, column) {
    const moved = row !== at.row;
    at = { row: Math.max(0, Math.min(rows.length - 1, row)), column: Math.max(0, Math.min(n - 1, column)) };
    const { layer, index, shares } = rows[at.row];
    readout.textContent = `Layer ${layer}, head ${index}: ${percent(shares[at.column])}`
      + ` on token ${at.column + 1} of ${n}, “${visible(found.texts[at.column])}”`;
    if (moved || !spans[0].style.backgroundColor) {
      spans.forEach((span, i) => { span.style.backgroundColor = colour(shares[i], 0.5); });
    }
    draw();
  }
  canvas.onpointermove = canvas.onpointerdown = (event) => {
    choose(Math.floor(event.offsetY / height), Math.floor(event.offsetX / width));
  };
  canvas.onkeydown = (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step) return;
    event.preventDefault();
    choose(at.row + step[0], at.column + step[1]);
  };
  const peaks = rows.map(({ shares }) => Math.max(...shares));
  const row = peaks.indexOf(Math.max(...peaks));  // begin with the largest share
  choose(row, rows[row].shares.indexOf(peaks[row]));
  return [
    make("p", {}, `What the model attended to when it chose “${visible(token.text)}”: one row per head,`
      + " layer by layer, one column per token before it. Point at a cell, or use the arrow keys."),
    readout, make("div", { className: "scroll" }, canvas),
    make("p", { className: "soft" }, "The text, shaded by the head of that row:"), shaded,
  ];
}

// The final norm and the output head, applied to the residual stream after each layer.
function showLayers(found, token) {
  const cell = (one) => make("td", {},
    make("span", { className: one.token === token.id ? "chip taken" : "chip" }, visible(one.text)),
    make("span", { className: "soft" }, ` ${percent(one.probability)}`));
  const rows = found.layers.map((one) => make("tr", {},
    make("th", { scope: "row" }, `${one.layer}`), ...one.guesses.map(cell),
    make("td", { className: "number" }, `${one.next.rank + 1}`), bar(one.next.probability)));
  const guesses = found.layers[0]?.guesses.map((_, i) => `guess ${i + 1}`) ?? [];
  return [
    make("p", {}, "Which next token each layer would guess: the final norm and the output head, applied to the"
      + " residual stream after that layer."),
    make("p", { className: "soft" }, `The last columns are the rank and the probability of “${visible(token.text)}”.`
      + " The guess of the last layer is the model's result."),
    make("table", { "aria-label": "Guesses of each layer" },
         head("layer", ...guesses, "rank", "probability"), make("tbody", {}, ...rows)),
  ];
}

// Time and bytes of each step of the plan, when one token is computed.
function showSteps(found) {
  const layers = [...new Set(found.steps.map((step) => step.layer))].filter((layer) => layer !== null);
  const which = make("select", { id: "which-layer" }, make("option", { value: "all" }, "all layers together"),
                     ...layers.map((layer) => make("option", { value: layer }, `layer ${layer}`)));
  const body = make("tbody");
  const size = (bytes) => bytes >= 1e6 ? `${(bytes / 1e6).toFixed(2)} MB`
    : bytes >= 1e3 ? `${(bytes / 1e3).toFixed(1)} kB` : `${bytes} B`;
  function fill() {
    const sums = new Map();
    for (const { layer, name, microseconds, bytes } of found.steps) {
      if (which.value !== "all" && `${layer}` !== which.value) continue;
      const sum = sums.get(name) ?? { n: 0, microseconds: 0, bytes: 0 };
      sums.set(name, { n: sum.n + 1, microseconds: sum.microseconds + microseconds, bytes: sum.bytes + bytes });
    }
    body.replaceChildren(...[...sums].map(([name, sum]) => {
      const share = bar(sum.microseconds / found.microseconds);
      const rate = sum.bytes > 0 && sum.microseconds > 0 ? (sum.bytes / sum.microseconds / 1e3).toFixed(2) : "";
      return make("tr", {}, make("th", { scope: "row" }, sum.n > 1 ? `${name} × ${sum.n}` : name),
                  make("td", { className: "number" }, `${sum.microseconds.toFixed(1)} µs`), share,
                  make("td", { className: "number" }, size(sum.bytes)), make("td", { className: "number" }, rate));
    }));
  }
  which.onchange = fill;
  fill();
  return [
    make("p", {}, `One token, computed by the textbook backend (f32, ${found.threads} thread): `
      + `${(found.microseconds / 1000).toFixed(2)} ms, ${size(found.bytes)} read.`
      + " The chat itself may use a faster backend."),
    make("div", { className: "row" }, make("label", { htmlFor: "which-layer" }, "Steps of"), which),
    make("table", { "aria-label": "Steps of the plan" }, head("step", "time", "of total", "bytes read", "GB/s"), body),
    make("details", {}, make("summary", {}, "The plan of this model"), make("pre", {}, model.plan)),
  ];
}

export const VIEWS = { choices: showChoices, attention: showAttention, layers: showLayers, steps: showSteps };

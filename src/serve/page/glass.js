// The glass box: how the model chose one token of an answer.

import { byId, focusOn, make } from "./dom.js";
import { current } from "./store.js";
import { askJson, model } from "./server.js";
import { answersOf, idsOf, sampling } from "./answers.js";
import { VIEWS, visible } from "./views.js";

let glass = null;  // { message, which, token, whatIf, view, opener } while it is open; which: 1 for the answer beside
let looking = null;

// whatIf(message, token, choice): continues the answer with another token at this place.
export function openGlass(message, which, token, whatIf) {
  const view = glass?.view ?? "choices";
  const opener = glass?.opener ?? document.activeElement;
  glass = { message, which, token, whatIf, view, opener };
  const wasHidden = byId("glass").hidden;
  byId("glass").hidden = false;
  look();
  if (wasHidden) byId("glass-title").focus();
}

export function closeGlass() {
  if (!glass) return;
  looking?.abort();
  const hadFocus = document.activeElement === document.body || byId("glass").contains(document.activeElement);
  byId("glass").hidden = true;
  const { opener, message } = glass;
  glass = null;
  markSelected();
  if (!hadFocus) return;
  const canHaveFocus = opener.isConnected && opener !== document.body;
  focusOn(canHaveFocus ? opener : byId("messages").children[message]);
}

export function markSelected() {
  for (const one of document.querySelectorAll(".token.selected")) one.classList.remove("selected");
  if (!glass) return;
  const place = `[data-message="${glass.message}"] [data-answer="${glass.which}"] [data-token="${glass.token}"]`;
  const token = document.querySelector(place);
  token?.classList.add("selected");
  token?.scrollIntoView({ block: "nearest" });
}

// [model, answer] of the token that the glass box shows
const glassAnswer = () => answersOf(current().messages[glass.message])[glass.which];

export function moveGlass(by) {
  const token = glass.token + by;
  if (token < 0 || token >= glassAnswer()[1].tokens.length) return;
  glass.token = token;
  look();
}

export function lookAt(view) {
  glass.view = view;
  look();
}

// After the settings or the colours changed.
export function lookAgain() {
  if (glass) look();
}

async function look() {
  const [one, answer] = glassAnswer();
  const token = answer.tokens[glass.token];
  const { message, token: at, view, whatIf } = glass;
  markSelected();
  for (const name of Object.keys(VIEWS)) {
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", name === view);
    tab.tabIndex = name === view ? 0 : -1;
  }
  byId("view").setAttribute("aria-labelledby", `tab-${view}`);
  byId("glass-before").disabled = at === 0;
  byId("glass-after").disabled = at === answer.tokens.length - 1;
  const before = answer.tokens.slice(Math.max(0, at - 8), at).map((one) => one.text).join("");
  byId("glass-context").replaceChildren(
    make("span", { className: "soft" }, `Token ${at + 1} of ${answer.tokens.length}: `),
    `${at > 8 ? "…" : ""}${before}`, make("mark", {}, token.text || visible(token.text)));
  looking?.abort();
  looking = new AbortController();
  const { signal } = looking;
  byId("view").setAttribute("aria-busy", "true");
  if (byId("view").childElementCount === 0) byId("view").append(make("p", {}, "Computing …"));
  try {
    const asked = { tokens: idsOf(answer, at), next: token.id, top: view === "layers" ? 4 : 12, ...sampling() };
    const found = await askJson(`${one.base}/glass/${view}`, asked, signal);
    if (signal.aborted) return;
    const use = one === model && ((choice) => whatIf(message, at, choice));
    byId("view").replaceChildren(...VIEWS[view](found, token, use));
  } catch (problem) {
    if (signal.aborted) return;
    byId("view").replaceChildren(make("p", { role: "alert" }, problem.message));
  }
  byId("view").removeAttribute("aria-busy");
}

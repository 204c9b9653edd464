// What the browser keeps: conversations, settings, and the theme. A conversation: { id, title, messages }.

import { say } from "./dom.js";

// A browser may refuse to store anything for this page.
export function stored(area, name) {
  try {
    return window[area].getItem(name);
  } catch {
    return null;
  }
}

export function tryToStore(area, name, value) {
  try {
    window[area].setItem(name, value);
  } catch { /* then it is forgotten when the page closes */ }
}

const MOST_CONVERSATIONS = 40;
const SAVE_EVERY = 2000;  // milliseconds, while an answer is written
let savedAt = 0;

// Conversations hold token ids, which have another meaning for another model: each model, or pair, has its own store.
let store = "";
export let kept = { conversations: [], current: null, settings: {} };

export const current = () => kept.conversations.find((one) => one.id === kept.current);

export function load(models) {
  store = ["stagecraft", ...models.map((one) => `${one.model} ${one.vocab_size}`)].join(" ");
  try {
    const found = JSON.parse(stored("localStorage", store));
    if (found && Array.isArray(found.conversations)) kept = { ...kept, ...found };
  } catch {
    say("The conversations in this browser cannot be read.", true);
  }
}

// Removes the oldest conversation, but never the one that is open. False if there is no other.
function removeOldest() {
  const at = kept.conversations.findLastIndex((one) => one.id !== kept.current);
  if (at >= 0) kept.conversations.splice(at, 1);
  return at >= 0;
}

// If the browser's storage is full, the oldest conversations are removed.
export function save() {
  savedAt = performance.now();
  while (kept.conversations.length > MOST_CONVERSATIONS) removeOldest();
  for (;;) {
    try {
      localStorage.setItem(store, JSON.stringify(kept));
      return;
    } catch {
      if (!removeOldest()) return say("This browser does not store conversations.", true);
    }
  }
}

// Called for each token of an answer that is being written: a browser may discard the tab at any time.
export function saveSometimes() {
  if (performance.now() - savedAt > SAVE_EVERY) save();
}

export function begin(title = "New conversation", messages = []) {
  const id = `${Date.now()}-${Math.floor(Math.random() * 1e6)}`;
  kept.conversations.unshift({ id, title, messages });
  kept.current = id;
  save();
}

// If another tab has saved: takes its settings and its conversations, except the one that is open here. (An answer
// that is being written has its settings already.)
export function takeOthers({ key, newValue }) {
  if (key !== store || !newValue) return false;
  const found = JSON.parse(newValue);
  const own = current();
  const others = found.conversations.map((one) => (one.id === own.id ? own : one));
  kept.settings = found.settings ?? kept.settings;
  kept.conversations = others.includes(own) ? others : [own, ...others];
  return true;
}

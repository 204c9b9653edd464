// The page of ./stage serve: a chat, and a glass box that shows how each token was chosen. This module starts the page,
// and connects buttons and keys with what they do. A module imports only modules above it in this list:
//   dom.js        elements, and the line that says what happens
//   store.js      conversations and settings in the browser
//   server.js     requests, the key, streams
//   answers.js    what messages and answers consist of
//   views.js      the views of the glass box
//   glass.js      the glass box
//   messages.js   shows a conversation
//   chat.js       writes answers
//   settings.js   settings and colours

import { byId, say } from "./dom.js";
import { begin, current, kept, load, save, takeOthers } from "./store.js";
import { beside, findModels, model } from "./server.js";
import { answersOf, writing } from "./answers.js";
import { VIEWS } from "./views.js";
import { closeGlass, lookAt, moveGlass, openGlass } from "./glass.js";
import { show, showConversations } from "./messages.js";
import { edit, retry, send, whatIf, write } from "./chat.js";
import { listenToSettings, setFirstTheme } from "./settings.js";

// The buttons of a message.
const ACTIONS = {
  Edit: edit,
  Retry: retry,
  Continue: (conversation, index) => write(conversation, conversation.messages[index]),
  "Look inside": (conversation, index) => openGlass(index, 0, 0, whatIf),
};

function listen() {
  byId("composer").onsubmit = send;
  byId("prompt").onkeydown = (event) => {
    // 229: Safari, while an input method is composing.
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.keyCode !== 229) send(event);
  };
  byId("stop").onclick = () => writing?.abort();
  byId("new").onclick = () => {
    closeGlass();
    if (current().messages.length > 0) begin();
    show(true);
    byId("prompt").focus();
  };
  byId("delete").onclick = () => {
    closeGlass();
    kept.conversations = kept.conversations.filter((one) => one.id !== kept.current);
    kept.current = kept.conversations[0]?.id;
    if (!current()) begin();
    save();
    show(true);
  };
  byId("conversations").onchange = (event) => { closeGlass(); kept.current = event.target.value; save(); show(true); };
  byId("messages").onclick = (event) => {
    const [button, token] = [event.target.closest("[data-action]"), event.target.closest(".token")];
    const index = Number(event.target.closest(".message")?.dataset.message);
    if (button) return ACTIONS[button.dataset.action](current(), index);
    if (!token || writing) return;
    const which = Number(token.closest(".answer").dataset.answer);
    const [one] = answersOf(current().messages[index])[which];
    if (one.glass_box) openGlass(index, which, Number(token.dataset.token), whatIf);
  };
  addEventListener("pagehide", () => { if (writing) save(); });
  addEventListener("storage", (event) => { if (takeOthers(event)) showConversations(); });
  byId("glass-close").onclick = closeGlass;
  byId("glass-before").onclick = () => moveGlass(-1);
  byId("glass-after").onclick = () => moveGlass(1);
  byId("glass").onkeydown = (event) => { if (event.key === "Escape") closeGlass(); };
  const names = Object.keys(VIEWS);
  for (const name of names) {
    byId(`tab-${name}`).onclick = () => lookAt(name);
    byId(`tab-${name}`).onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      const next = names[(names.indexOf(name) + by + names.length) % names.length];
      byId(`tab-${next}`).focus();
      lookAt(next);
    };
  }
}

async function start() {
  setFirstTheme();
  await findModels();
  load(beside ? [model, beside] : [model]);
  document.title = `${model.model} · Stagecraft`;
  byId("model").textContent = beside ? `${model.model} | ${beside.model}` : model.model;
  byId("system-label").hidden = !model.chat;
  byId("prompt-label").textContent = model.chat ? "Message" : "A text to continue";
  byId("prompt").placeholder = model.chat ? "Message" : "Once upon a time";
  byId("send").textContent = model.chat ? "Send" : "Continue";
  if (!current()) begin();
  listen();
  listenToSettings();
  show(true);
  byId("prompt").focus();
}

start().catch((problem) => say(problem.message, true));

// Shows a conversation. A button of a message has only the name of its action: page.js knows what it does.

import { byId, focusOn, make } from "./dom.js";
import { current, kept } from "./store.js";
import { model } from "./server.js";
import { NOTHING, answersOf, goesOn, writing } from "./answers.js";
import { markSelected } from "./glass.js";

function tokenSpan(token, index) {
  const p = Math.exp(token.logprob ?? 0);
  const tint = p < 0.05 ? " p3" : p < 0.2 ? " p2" : p < 0.5 ? " p1" : "";
  return make("span", { className: `token${tint}`, "data-token": index }, token.text);
}

const action = (label) =>
  make("button", { type: "button", "data-action": label, disabled: writing !== null }, label);

// An answer, in a column of its own if another one stands beside it. A line under a token beside the
// first answer says that the first has another token there.
function answerElement(message, one, answer) {
  const spans = answer.tokens.map(tokenSpan);
  if (answer !== message) {
    const parts = answer.tokens.findIndex((token, i) => token.id !== message.tokens[i]?.id);
    if (parts >= 0 && one.vocab_size === model.vocab_size) spans[parts].classList.add("parts");
  }
  if (spans.length === 0 && answer.finish === "stop") spans.push(make("span", { className: "soft" }, NOTHING));
  const who = answer.forgotten > 0
    ? `${one.model} (its context was full: it does not see the first ${answer.forgotten} messages)` : one.model;
  return make("div", { className: "answer", "data-answer": answer === message ? 0 : 1 },
              make("div", { className: "who" }, who), make("div", { className: "body" }, ...spans));
}

function messageElement(conversation, message, index) {
  const actions = make("div", { className: "actions" });
  if (message.role === "user") {
    const body = make("div", { className: "body" }, message.text);
    actions.append(action("Edit"));
    return make("article", { className: "message user", "data-message": index, tabIndex: -1 },
                make("div", { className: "who" }, model.chat ? "You" : "Your text"), body, actions);
  }
  const answers = answersOf(message);
  if (index === conversation.messages.length - 1) {
    actions.append(action("Retry"));
    if (answers.some(goesOn)) actions.append(action("Continue"));
  }
  if (message.tokens.length > 0) actions.append(action("Look inside"));
  const elements = answers.map(([one, answer]) => answerElement(message, one, answer));
  return make("article", { className: "message assistant", "data-message": index, tabIndex: -1 },
              make("div", { className: "answers" }, ...elements), actions);
}

const isAtEnd = (list) => list.scrollHeight - list.scrollTop - list.clientHeight < 60;

// A reader who has scrolled up stays there, except toEnd.
export function show(toEnd = isAtEnd(byId("messages"))) {
  const conversation = current();
  const messages = conversation.messages.map((one, i) => messageElement(conversation, one, i));
  const welcome = make("p", { className: "welcome" }, model.chat
    ? "Write a message to the model. Then click a token of its answer to see how the model chose it."
    : "This model has no chat template, so it continues your text. Then click a token to see how the model chose it.");
  const list = byId("messages"), { scrollTop } = list;
  list.replaceChildren(...(messages.length > 0 ? messages : [welcome]));
  list.scrollTop = toEnd ? list.scrollHeight : scrollTop;
  byId("send").hidden = writing !== null;
  byId("stop").hidden = writing === null;
  for (const id of ["new", "delete", "conversations"]) byId(id).disabled = writing !== null;
  showConversations();
  markSelected();
  // The button that had the focus may be gone; the next Tab must not begin at the top of the page. The prompt must not
  // get the focus: a phone would show its keyboard over the answer.
  if (document.activeElement === document.body || document.activeElement.hidden) focusOn(list.lastElementChild);
}

export function showConversations() {
  byId("conversations").replaceChildren(...kept.conversations.map((one) =>
    make("option", { value: one.id, selected: one.id === kept.current }, one.title)));
}

// Adds the tokens of an answer that the page does not show yet.
export function showNew(message, answer) {
  const place = `[data-answer="${answer === message ? 0 : 1}"] .body`;
  const body = byId("messages").lastElementChild?.querySelector(place);
  if (!body) return;
  const list = byId("messages");
  const atEnd = isAtEnd(list);
  const shown = body.childElementCount;
  if (shown > 0) body.lastElementChild.textContent = answer.tokens[shown - 1].text;
  body.append(...answer.tokens.slice(shown).map((token, i) => tokenSpan(token, shown + i)));
  if (atEnd) list.scrollTop = list.scrollHeight;
}

// Questions and answers: sends messages to the models, and shows the answers while they are written.

import { byId, focusOn, make, say } from "./dom.js";
import { begin, current, kept, save, saveSometimes } from "./store.js";
import { ask, beside, events, model } from "./server.js";
import {
  NOTHING, answersOf, beginWriting, endWriting, goesOn, idsOf, isFull, sampling, textOf, writing,
} from "./answers.js";
import { closeGlass } from "./glass.js";
import { show, showNew } from "./messages.js";

function options() {
  const seed = kept.settings.seed ?? Math.floor(Math.random() * 2 ** 32);
  return { ...sampling(), seed, stream: true, return_token_ids: true };
}

// Forgets the older half of the messages that the model still sees: more than needed, so that there is room for the
// answer and for some of the next messages. False if the last message is the only one.
function forgetHalf(answer, before) {
  const exchanges = Math.floor((before.length - answer.forgotten) / 2);
  answer.forgotten += 2 * Math.ceil(exchanges / 2);
  return exchanges > 0;
}

// An answer to the last of the messages, without tokens. past: the answer before it, or undefined.
function newAnswer(one, past, before) {
  const answer = { prompt: [], tokens: [], finish: null, forgotten: past?.forgotten ?? 0 };
  const needed = Math.min(kept.settings.max_tokens ?? Infinity, one.context / 4);
  if (past && idsOf(past).length + needed > one.context) forgetHalf(answer, before);
  return answer;
}

// Adds an answer of each model to the messages of a conversation, and shows it while it is written.
async function answerTo(conversation) {
  const before = conversation.messages.slice();
  const past = before.findLast((one) => one.role === "assistant");
  const message = { role: "assistant", ...newAnswer(model, past, before) };
  if (beside) message.beside = newAnswer(beside, past?.beside ?? past, before);
  conversation.messages.push(message);
  await write(conversation, message);
}

// The path and the body with which a model writes its answer to the last of the messages, or continues it after the
// tokens that it already has. Each model sees its own earlier answers.
function requestFor(one, answer, before, common) {
  const most = kept.settings.max_tokens;
  if (answer.prompt.length > 0) {
    return ["/v1/completions", {
      ...common, prompt: idsOf(answer), logprobs: 0, stop_token_ids: one.end_tokens,
      max_tokens: most ?? (one.chat ? -1 : 200),  // -1: up to the end of the context
    }];
  }
  if (!one.chat) {
    const prompt = before.at(-1).text;
    return ["/v1/completions", { ...common, prompt, logprobs: 0, max_tokens: most ?? 200 }];
  }
  const system = kept.settings.system ? [{ role: "system", content: kept.settings.system }] : [];
  const messages = before.slice(answer.forgotten).map((past) =>
    ({ role: past.role, content: textOf(one === beside ? past.beside ?? past : past) }));
  return ["/v1/chat/completions", {
    ...common, messages: [...system, ...messages], logprobs: true, ...(most && { max_tokens: most }),
  }];
}

// If the messages are longer than the context, the model forgets half of them.
async function askForAnswer(one, answer, before, common, signal) {
  for (;;) {
    try {
      const [path, body] = requestFor(one, answer, before, common);
      return await ask(one.base + path, body, signal);
    } catch (problem) {
      if (problem.code !== "context_length_exceeded" || !one.chat || !forgetHalf(answer, before)) throw problem;
    }
  }
}

// Writes or continues the answers in a message, with the same seed.
export async function write(conversation, message) {
  beginWriting();
  const { signal } = writing;
  const common = options();
  const before = conversation.messages.slice(0, conversation.messages.indexOf(message));
  const asked = answersOf(message).filter(goesOn);
  const had = asked.map(([, answer]) => answer.tokens.length);
  for (const [, answer] of asked) answer.finish = null;
  save();  // a browser may discard the tab at any time
  show(true);
  say("Writing …");
  const said = await Promise.all(asked.map(async ([one, answer], i) => {
    const begun = performance.now();
    try {
      await receive(message, answer, await askForAnswer(one, answer, before, common, signal));
    } catch (problem) {
      if (!signal.aborted) return { problem };
      answer.finish = "stopped";
      return { text: "Stopped." };
    }
    const made = answer.tokens.length - had[i];
    const speed = (1000 * made / (performance.now() - begun)).toFixed(0);
    const cut = answer.finish === "length", full = cut && isFull(one, answer);
    const why = full ? `; the context of ${one.context} tokens is full` : "";
    return { text: `${made} tokens, ${speed} tokens/s${why}`, cut: cut && !full };
  }));
  const problem = said.find((one) => one.problem)?.problem;
  const names = (text, i) => (asked.length > 1 ? `${asked[i][0].model}: ${text}` : text);
  const texts = signal.aborted ? ["Stopped."] : said.map((one, i) => names(one.text, i));
  if (said.some((one) => one.cut) && !signal.aborted) texts.push("cut off: press Continue for more");
  say(problem ? problem.message : texts.join("; "), Boolean(problem));
  if (answersOf(message).every(([, answer]) => answer.tokens.length === 0 && answer.finish !== "stop")) {
    conversation.messages.splice(conversation.messages.indexOf(message), 1);
  }
  endWriting();
  save();
  show();
  byId("said").textContent = answersOf(message).map(([one, answer]) =>
    (beside ? `${one.model}: ` : "") + (textOf(answer) || NOTHING)).join("\n");
}

async function receive(message, answer, stream) {
  for await (const event of events(stream)) {
    const [choice] = event.choices;
    if (answer.prompt.length === 0) {
      answer.prompt = event.prompt_token_ids ?? choice.prompt_token_ids ?? [];
    }
    take(answer, choice);
    saveSometimes();
    showNew(message, answer);
  }
}

// One event has at most one token. Text without a token belongs to the previous token.
function take(answer, choice) {
  const text = choice.delta ? choice.delta.content ?? "" : choice.text;
  const logprob = choice.logprobs?.content?.[0].logprob ?? choice.logprobs?.token_logprobs?.[0];
  const [id] = choice.token_ids ?? [];
  if (id !== undefined) answer.tokens.push({ id, text, logprob });
  else if (text && answer.tokens.length > 0) answer.tokens.at(-1).text += text;
  if (choice.finish_reason) answer.finish = choice.finish_reason;
}

// Copies the conversation up to this place, and continues it with another token. The old one stays.
export async function whatIf(messageIndex, tokenIndex, choice) {
  if (writing) return;
  const from = current();
  const messages = structuredClone(from.messages.slice(0, messageIndex + 1));
  const answer = messages.at(-1);
  answer.tokens.splice(tokenIndex);
  answer.finish = null;
  delete answer.beside;
  begin(`${from.title} · if “${choice.text.trim()}”`, messages);
  closeGlass();
  if (model.end_tokens.includes(choice.token)) {
    answer.finish = "stop";
  } else {
    answer.tokens.push({ id: choice.token, text: choice.special ? "" : choice.text,
                         logprob: Math.log(choice.probability), chosen: true });
    if (!isFull(model, answer)) return write(current(), answer);
    answer.finish = "length";
  }
  save();
  show(true);
  say("The answer ends here.");
}

export function edit(conversation, index) {
  const element = byId("messages").children[index];
  const button = (label, run) => make("button", { type: "button", onclick: run }, label);
  const value = conversation.messages[index].text;
  const text = make("textarea", { rows: 3, value, "aria-label": "Edit the message" });
  element.querySelector(".body").replaceChildren(text);
  element.querySelector(".actions").replaceChildren(
    button("Send again", () => {
      if (text.value === "") return;
      conversation.messages.splice(index, Infinity, { role: "user", text: text.value });
      closeGlass();
      answerTo(conversation);
    }),
    button("Cancel", () => {
      show();
      focusOn(byId("messages").children[index].querySelector(".actions button"));
    }));
  text.focus();
}

export function retry(conversation, index) {
  conversation.messages.splice(index);
  closeGlass();
  answerTo(conversation);
}

export function send(event) {
  event.preventDefault();
  const prompt = byId("prompt");
  if (writing || prompt.value.trim() === "") return;
  const conversation = current();
  const last = conversation.messages.at(-1);
  if (last?.role === "user") conversation.messages.pop();  // the answer to it failed
  if (conversation.messages.length === 0) conversation.title = prompt.value.trim().slice(0, 40);
  conversation.messages.push({ role: "user", text: prompt.value });
  prompt.value = "";
  if (matchMedia("(pointer: fine)").matches) prompt.focus();  // after a click on Send; not on a phone
  closeGlass();
  answerTo(conversation);
}

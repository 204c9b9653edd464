// What messages and answers consist of. A message: { role: "user", text }, or
// { role: "assistant", prompt: [ids], tokens: [{ id, text, logprob }], finish, forgotten, beside }. "forgotten" is the
// number of messages, the oldest, that the model did not see. "beside" is the answer of the model beside the first
// one, with the same members.

import { kept } from "./store.js";
import { beside, model } from "./server.js";

export const NOTHING = "(empty)";  // in place of an answer without tokens

export let writing = null;  // the AbortController of the answer that is being written
export const beginWriting = () => { writing = new AbortController(); };
export const endWriting = () => { writing = null; };

export const textOf = (message) => message.text ?? message.tokens.map((token) => token.text).join("");

export const idsOf = (answer, count = answer.tokens.length) =>
  [...answer.prompt, ...answer.tokens.slice(0, count).map((token) => token.id)];

// The answers in a message, each with its model.
export function answersOf(message) {
  return [[model, message], ...(beside && message.beside ? [[beside, message.beside]] : [])];
}

// The model reads a text up to its context, and chooses one token more.
export const isFull = (one, answer) => idsOf(answer).length > one.context;
export const goesOn = ([one, answer]) => answer.finish !== "stop" && !isFull(one, answer);

export const SETTINGS = ["temperature", "top_k", "top_p", "repeat_penalty"];
export const setting = (name) => kept.settings[name] ?? model[name];

export function sampling() {
  return Object.fromEntries(SETTINGS.map((name) => [name, setting(name)]));
}

// Requests to the server, with its key.

import { byId } from "./dom.js";
import { stored, tryToStore } from "./store.js";

const KEY = "stagecraft-key";  // in the storage of this tab only
let givenKey = null;
export let model = null;   // the answer of /glass/model
export let beside = null;  // the same for the second model (./stage serve --beside), or null

export async function findModels() {
  model = { ...await askJson("/glass/model"), base: "" };
  if (model.beside) beside = { ...await askJson("/beside/glass/model"), base: "/beside" };
}

const canBeKey = (text) => /^[\x21-\x7e]+$/.test(text);  // an HTTP header can have nothing else

function askForKey(problem) {
  const dialog = byId("key");
  return new Promise((done) => {
    dialog.addEventListener("close", () => {
      const given = dialog.querySelector("input").value.trim();
      if (given && !canBeKey(given)) {
        return done(askForKey("This is not a key: a key has only English letters, digits and signs, without spaces."));
      }
      givenKey = given;
      if (given) tryToStore("sessionStorage", KEY, given);
      done(given !== "");
    }, { once: true });
    dialog.querySelector("input").value = "";
    dialog.showModal();
    byId("key-problem").textContent = problem;
  });
}

export async function ask(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = givenKey ?? stored("sessionStorage", KEY) ?? "";
  if (canBeKey(key)) headers.Authorization = `Bearer ${key}`;
  const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
  const answer = await fetch(path, { ...options, headers, signal });
  if (answer.ok) return answer;
  const problemOfKey = key ? "The server does not accept this key." : "";
  if (answer.status === 401 && await askForKey(problemOfKey)) return ask(path, body, signal);
  let problem = { message: `the server answered ${answer.status}` };
  try {
    problem = (await answer.json()).error;
  } catch { /* not JSON: the message is the status */ }
  throw Object.assign(new Error(problem.message), { code: problem.code });
}

export const askJson = async (path, body, signal) => (await ask(path, body, signal)).json();

// The JSON objects of a stream of server-sent events.
export async function* events(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the answer of the server ended too early");
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n").filter((line) => !line.startsWith(":"));  // without comments
      if (lines.length === 0) continue;
      const data = lines.join("\n").replace(/^data: /, "");
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

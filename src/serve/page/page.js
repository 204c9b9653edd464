// The page of ./stage serve: a chat, and a glass box that shows how each token was chosen.
// Text that a model or a person wrote is always inserted as text, never as HTML.

const byId = (id) => document.getElementById(id);
const percent = (share) =>
  share >= 0.9995 ? "100%" : share >= 0.1 ? `${(100 * share).toFixed(1)}%` : `${(100 * share).toFixed(2)}%`;

// Makes an element with these properties (also "class" and "aria-...") and children (elements or strings).
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

// Makes spaces and line ends visible, for a token that is shown alone.
const visible = (text) => text.replaceAll("\n", "↵").replaceAll("\t", "⇥").replace(/^ | $/g, "·") || "(no text)";

function say(text, bad = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("bad", bad);
}

// ---- what the browser keeps ---------------------------------------------------------------------

// A browser may refuse to store anything for this page.
function stored(area, name) {
  try {
    return window[area].getItem(name);
  } catch {
    return null;
  }
}

function tryToStore(area, name, value) {
  try {
    window[area].setItem(name, value);
  } catch { /* then it is forgotten when the page closes */ }
}

const THEME = "stagecraft-theme";
const MOST_CONVERSATIONS = 40;
const SAVE_EVERY = 2000;  // milliseconds, while an answer is written
let savedAt = 0;
let kept = { conversations: [], current: null, settings: {} };

// Conversations hold token ids, which have another meaning for another model: each model, or pair, has its own store.
const store = () =>
  ["stagecraft", ...[model, beside].filter(Boolean).map((one) => `${one.model} ${one.vocab_size}`)].join(" ");

function load() {
  try {
    const found = JSON.parse(stored("localStorage", store()));
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
function save() {
  savedAt = performance.now();
  while (kept.conversations.length > MOST_CONVERSATIONS) removeOldest();
  for (;;) {
    try {
      localStorage.setItem(store(), JSON.stringify(kept));
      return;
    } catch {
      if (!removeOldest()) return say("This browser does not store conversations.", true);
    }
  }
}

// Another tab has saved: takes its settings and its conversations, except the one that is open here. (An answer
// that is being written has its settings already.)
function takeOthers(text) {
  const found = JSON.parse(text);
  const own = current();
  const others = found.conversations.map((one) => (one.id === own.id ? own : one));
  kept.settings = found.settings ?? kept.settings;
  kept.conversations = others.includes(own) ? others : [own, ...others];
  showConversations();
}

// ---- the server ---------------------------------------------------------------------------------

const KEY = "stagecraft-key";  // in the storage of this tab only
let givenKey = null;
let model = null;              // the answer of /glass/model
let beside = null;             // the same for the second model (./stage serve --beside), or null

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

async function ask(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  const key = givenKey ?? stored("sessionStorage", KEY) ?? "";
  if (canBeKey(key)) headers.Authorization = `Bearer ${key}`;
  const options = body ? { method: "POST", body: JSON.stringify(body) } : {};
  const answer = await fetch(path, { ...options, headers, signal });
  if (answer.ok) return answer;
  if (answer.status === 401 && await askForKey(key ? "The server does not accept this key." : "")) return ask(path, body, signal);
  let problem = { message: `the server answered ${answer.status}` };
  try {
    problem = (await answer.json()).error;
  } catch { /* not JSON: the message is the status */ }
  throw Object.assign(new Error(problem.message), { code: problem.code });
}

const askJson = async (path, body, signal) => (await ask(path, body, signal)).json();

// The JSON objects of a stream of server-sent events.
async function* events(answer) {
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

// ---- conversations ------------------------------------------------------------------------------
// A conversation: { id, title, messages }. A message: { role: "user", text }, or
// { role: "assistant", prompt: [ids], tokens: [{ id, text, logprob }], finish, forgotten, beside }. "forgotten" is the
// number of messages, the oldest, that the model did not see. "beside" is the answer of the model beside the first
// one, with the same members.

const NOTHING = "(empty)";  // in place of an answer without tokens

let writing = null;  // the AbortController of the answer that is being written

const current = () => kept.conversations.find((one) => one.id === kept.current);
const textOf = (message) => message.text ?? message.tokens.map((token) => token.text).join("");
const idsOf = (answer, count = answer.tokens.length) =>
  [...answer.prompt, ...answer.tokens.slice(0, count).map((token) => token.id)];

function begin(title = "New conversation", messages = []) {
  const id = `${Date.now()}-${Math.floor(Math.random() * 1e6)}`;
  kept.conversations.unshift({ id, title, messages });
  kept.current = id;
  save();
}

const SETTINGS = ["temperature", "top_k", "top_p", "repeat_penalty"];
const setting = (name) => kept.settings[name] ?? model[name];

function sampling() {
  return Object.fromEntries(SETTINGS.map((name) => [name, setting(name)]));
}

function options() {
  const seed = kept.settings.seed ?? Math.floor(Math.random() * 2 ** 32);
  return { ...sampling(), seed, stream: true, return_token_ids: true };
}

// The model reads a text up to its context, and chooses one token more.
const isFull = (one, answer) => idsOf(answer).length > one.context;
const goesOn = ([one, answer]) => answer.finish !== "stop" && !isFull(one, answer);

// The answers in a message, each with its model.
function answersOf(message) {
  return [[model, message], ...(beside && message.beside ? [[beside, message.beside]] : [])];
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
  if (!one.chat) return ["/v1/completions", { ...common, prompt: before.at(-1).text, logprobs: 0, max_tokens: most ?? 200 }];
  const system = kept.settings.system ? [{ role: "system", content: kept.settings.system }] : [];
  const messages = before.slice(answer.forgotten).map((past) =>
    ({ role: past.role, content: textOf(one === beside ? past.beside ?? past : past) }));
  return ["/v1/chat/completions", { ...common, messages: [...system, ...messages], logprobs: true, ...(most && { max_tokens: most }) }];
}

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
async function write(conversation, message) {
  writing = new AbortController();
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
  writing = null;
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
    if (performance.now() - savedAt > SAVE_EVERY) save();
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
async function whatIf(messageIndex, tokenIndex, choice) {
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

// ---- showing conversations ----------------------------------------------------------------------

function tokenSpan(token, index) {
  const p = Math.exp(token.logprob ?? 0);
  const tint = p < 0.05 ? " p3" : p < 0.2 ? " p2" : p < 0.5 ? " p1" : "";
  return make("span", { className: `token${tint}`, "data-token": index }, token.text);
}

const action = (label, run) => make("button", { type: "button", onclick: run, disabled: writing !== null }, label);

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
    actions.append(action("Edit", () => edit(conversation, index, body, actions)));
    return make("article", { className: "message user", "data-message": index, tabIndex: -1 },
                make("div", { className: "who" }, model.chat ? "You" : "Your text"), body, actions);
  }
  const answers = answersOf(message);
  if (index === conversation.messages.length - 1) {
    actions.append(action("Retry", () => retry(conversation, index)));
    if (answers.some(goesOn)) {
      actions.append(action("Continue", () => write(conversation, message)));
    }
  }
  if (message.tokens.length > 0) actions.append(action("Look inside", () => openGlass(index, 0, 0)));
  return make("article", { className: "message assistant", "data-message": index, tabIndex: -1 },
              make("div", { className: "answers" }, ...answers.map(([one, answer]) => answerElement(message, one, answer))),
              actions);
}

const isAtEnd = (list) => list.scrollHeight - list.scrollTop - list.clientHeight < 60;

// A reader who has scrolled up stays there, except toEnd.
function show(toEnd = isAtEnd(byId("messages"))) {
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

const focusOn = (element) => element?.focus({ preventScroll: true });

function showConversations() {
  byId("conversations").replaceChildren(...kept.conversations.map((one) =>
    make("option", { value: one.id, selected: one.id === kept.current }, one.title)));
}

// Adds the tokens of an answer that the page does not show yet.
function showNew(message, answer) {
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

function edit(conversation, index, body, actions) {
  const text = make("textarea", { rows: 3, value: conversation.messages[index].text, "aria-label": "Edit the message" });
  body.replaceChildren(text);
  actions.replaceChildren(
    action("Send again", () => {
      if (text.value === "") return;
      conversation.messages.splice(index, Infinity, { role: "user", text: text.value });
      closeGlass();
      answerTo(conversation);
    }),
    action("Cancel", () => {
      show();
      focusOn(byId("messages").children[index].querySelector(".actions button"));
    }));
  text.focus();
}

function retry(conversation, index) {
  conversation.messages.splice(index);
  closeGlass();
  answerTo(conversation);
}

function send(event) {
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

// ---- the glass box ------------------------------------------------------------------------------

const VIEWS = { choices: showChoices, attention: showAttention, layers: showLayers, steps: showSteps };
let glass = null;  // { message, which, token, view, opener } while it is open; which: 1 for the answer beside
let looking = null;

function openGlass(message, which, token) {
  const view = glass?.view ?? "choices";
  const opener = glass?.opener ?? document.activeElement;
  glass = { message, which, token, view, opener };
  const wasHidden = byId("glass").hidden;
  byId("glass").hidden = false;
  look();
  if (wasHidden) byId("glass-title").focus();
}

function closeGlass() {
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

function markSelected() {
  for (const one of document.querySelectorAll(".token.selected")) one.classList.remove("selected");
  if (!glass) return;
  const place = `[data-message="${glass.message}"] [data-answer="${glass.which}"] [data-token="${glass.token}"]`;
  const token = document.querySelector(place);
  token?.classList.add("selected");
  token?.scrollIntoView({ block: "nearest" });
}

// [model, answer] of the token that the glass box shows
const glassAnswer = () => answersOf(current().messages[glass.message])[glass.which];

function moveGlass(by) {
  const token = glass.token + by;
  if (token < 0 || token >= glassAnswer()[1].tokens.length) return;
  glass.token = token;
  look();
}

async function look() {
  const [one, answer] = glassAnswer();
  const token = answer.tokens[glass.token];
  const { message, token: at, view } = glass;
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
    const tokens = idsOf(answer, at);
    const found = await askJson(`${one.base}/glass/${view}`, { tokens, next: token.id, top: view === "layers" ? 4 : 12, ...sampling() }, signal);
    if (signal.aborted) return;
    byId("view").replaceChildren(...VIEWS[view](found, token, one === model && ((choice) => whatIf(message, at, choice))));
  } catch (problem) {
    if (signal.aborted) return;
    byId("view").replaceChildren(make("p", { role: "alert" }, problem.message));
  }
  byId("view").removeAttribute("aria-busy");
}

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
    make("p", {}, `The likeliest tokens at this place.${use ? " Click another one: a new conversation continues from it." : ""}`),
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
    readout.textContent = `Layer ${layer}, head ${index}: ${percent(shares[at.column])} on token ${at.column + 1} of ${n}, “${visible(found.texts[at.column])}”`;
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
    make("p", {}, `What the model attended to when it chose “${visible(token.text)}”: one row per head, layer by layer,`
      + " one column per token before it. Point at a cell, or use the arrow keys."),
    readout, make("div", { className: "scroll" }, canvas),
    make("p", { className: "soft" }, "The text, shaded by the head of that row:"), shaded,
  ];
}

// The final norm and the output head, applied to the residual stream after each layer.
function showLayers(found, token) {
  const cell = (one) => make("td", {}, make("span", { className: one.token === token.id ? "chip taken" : "chip" }, visible(one.text)),
                             make("span", { className: "soft" }, ` ${percent(one.probability)}`));
  const rows = found.layers.map((one) => make("tr", {},
    make("th", { scope: "row" }, `${one.layer}`), ...one.guesses.map(cell),
    make("td", { className: "number" }, `${one.next.rank + 1}`), bar(one.next.probability)));
  const guesses = found.layers[0]?.guesses.map((_, i) => `guess ${i + 1}`) ?? [];
  return [
    make("p", {}, "Which next token each layer would guess: the final norm and the output head, applied to the residual stream after that layer."),
    make("p", { className: "soft" }, `The last columns are the rank and the probability of “${visible(token.text)}”. `
      + "The guess of the last layer is the model's result."),
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
  const size = (bytes) => bytes >= 1e6 ? `${(bytes / 1e6).toFixed(2)} MB` : bytes >= 1e3 ? `${(bytes / 1e3).toFixed(1)} kB` : `${bytes} B`;
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
      + `${(found.microseconds / 1000).toFixed(2)} ms, ${size(found.bytes)} read. The chat itself may use a faster backend.`),
    make("div", { className: "row" }, make("label", { htmlFor: "which-layer" }, "Steps of"), which),
    make("table", { "aria-label": "Steps of the plan" }, head("step", "time", "of total", "bytes read", "GB/s"), body),
    make("details", {}, make("summary", {}, "The plan of this model"), make("pre", {}, model.plan)),
  ];
}

// ---- settings, theme, keys ----------------------------------------------------------------------

function openSettings() {
  const form = byId("settings").querySelector("form");
  for (const name of [...SETTINGS, "max_tokens", "seed", "system"]) {
    form.elements[name].value = kept.settings[name] ?? model[name] ?? "";
  }
  byId("settings").returnValue = "";
  byId("settings").showModal();
}

function saveSettings() {
  if (byId("settings").returnValue !== "save") return;
  const form = byId("settings").querySelector("form");
  kept.settings = { system: form.elements.system.value };
  for (const name of [...SETTINGS, "max_tokens", "seed"]) {
    const { value } = form.elements[name];
    if (value !== "" && Number(value) !== model[name]) kept.settings[name] = Number(value);
  }
  save();
  if (glass) look();
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
}

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
    const token = event.target.closest(".token");
    if (!token || writing) return;
    const message = Number(token.closest(".message").dataset.message);
    const which = Number(token.closest(".answer").dataset.answer);
    if (answersOf(current().messages[message])[which][0].glass_box) openGlass(message, which, Number(token.dataset.token));
  };
  byId("settings-open").onclick = openSettings;
  byId("settings").onclose = saveSettings;
  byId("settings-cancel").onclick = () => byId("settings").close();
  byId("settings-reset").onclick = () => { kept.settings = {}; save(); openSettingsAgain(); };
  byId("theme").onclick = () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    tryToStore("localStorage", THEME, theme);
    if (glass) look();
  };
  addEventListener("pagehide", () => { if (writing) save(); });
  addEventListener("storage", (event) => { if (event.key === store() && event.newValue) takeOthers(event.newValue); });
  byId("glass-close").onclick = closeGlass;
  byId("glass-before").onclick = () => moveGlass(-1);
  byId("glass-after").onclick = () => moveGlass(1);
  byId("glass").onkeydown = (event) => { if (event.key === "Escape") closeGlass(); };
  const names = Object.keys(VIEWS);
  for (const name of names) {
    byId(`tab-${name}`).onclick = () => { glass.view = name; look(); };
    byId(`tab-${name}`).onkeydown = (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      glass.view = names[(names.indexOf(name) + by + names.length) % names.length];
      byId(`tab-${glass.view}`).focus();
      look();
    };
  }
}

function openSettingsAgain() {
  byId("settings").close();
  openSettings();
}

async function start() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(stored("localStorage", THEME) ?? (dark ? "dark" : "light"));
  model = { ...await askJson("/glass/model"), base: "" };
  if (model.beside) beside = { ...await askJson("/beside/glass/model"), base: "/beside" };
  load();
  document.title = `${model.model} · Stagecraft`;
  byId("model").textContent = beside ? `${model.model} | ${beside.model}` : model.model;
  byId("system-label").hidden = !model.chat;
  byId("prompt-label").textContent = model.chat ? "Message" : "A text to continue";
  byId("prompt").placeholder = model.chat ? "Message" : "Once upon a time";
  byId("send").textContent = model.chat ? "Send" : "Continue";
  if (!current()) begin();
  listen();
  show(true);
  byId("prompt").focus();
}

start().catch((problem) => say(problem.message, true));

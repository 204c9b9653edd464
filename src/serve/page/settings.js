// The settings, and the colours.

import { byId } from "./dom.js";
import { kept, save, stored, tryToStore } from "./store.js";
import { model } from "./server.js";
import { SETTINGS } from "./answers.js";
import { lookAgain } from "./glass.js";

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
  lookAgain();
}

const THEME = "stagecraft-theme";

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = theme === "dark" ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
}

export function listenToSettings() {
  byId("settings-open").onclick = openSettings;
  byId("settings").onclose = saveSettings;
  byId("settings-cancel").onclick = () => byId("settings").close();
  byId("settings-reset").onclick = () => {
    kept.settings = {};
    save();
    byId("settings").close();
    openSettings();
  };
  byId("theme").onclick = () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    setTheme(theme);
    tryToStore("localStorage", THEME, theme);
    lookAgain();
  };
}

export function setFirstTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  setTheme(stored("localStorage", THEME) ?? (dark ? "dark" : "light"));
}

// Elements of the page. Text that a model or a person wrote is always inserted as text, never as HTML.

export const byId = (id) => document.getElementById(id);

// Makes an element with these properties (also "class" and "aria-...") and children (elements or strings).
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function say(text, bad = false) {
  byId("status").textContent = text;
  byId("status").classList.toggle("bad", bad);
}

export const focusOn = (element) => element?.focus({ preventScroll: true });

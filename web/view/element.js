// The only way this page makes DOM: elements by name, text as text.

/** `props`: `class`, `on<event>` listeners, other attributes; absent, null and false ones are left out. */
export function h(name, props = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? '' : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A paragraph of text that came from outside: its own direction, line breaks kept. */
export function prose(value, className = 'prose') {
  return h('p', { class: className, dir: 'auto' }, text(value));
}

export const text = (value) => (typeof value === 'string' ? value : '');

export const list = (value) => (Array.isArray(value) ? value : []);

export const texts = (value) => list(value).filter((item) => typeof item === 'string' && item.trim());

export const records = (value) => list(value).filter((item) => item !== null && typeof item === 'object');

/** A titled list of sentences, or nothing when there are none. */
export function section(title, items, { ordered = false } = {}) {
  if (!items.length) return null;
  const rows = items.map((item) => h('li', { dir: 'auto' }, item));
  return h('section', {}, h('h4', {}, title), h(ordered ? 'ol' : 'ul', {}, rows));
}

let counter = 0;

export function newDomId(prefix) {
  counter += 1;
  return `${prefix}-${counter}`;
}

// The evidence behind a claim: what was asked, what was covered, the lines themselves, the documents.

import { coverageSentences, errorText, OBSERVATION_STATUS, toolName, utc } from '../words.js';
import { h, list, newDomId, prose, records, text, texts } from './element.js';
import { highlight, occurs } from './highlight.js';

/** A link only for a plain http(s) address; anything else stays text. */
export function sourceLink(source) {
  const address = text(source);
  return isWebAddress(address)
    ? h('a', { href: address, rel: 'noopener noreferrer', target: '_blank' }, address)
    : h('code', { dir: 'auto' }, address);
}

function isWebAddress(address) {
  if (!/^https?:\/\/[^\s\\\p{Cc}\p{Cf}]+$/iu.test(address)) return false;
  try {
    const { protocol, username, password } = new URL(address);
    return ['http:', 'https:'].includes(protocol) && !username && !password;
  } catch {
    return false;
  }
}

export function referenceView(reference) {
  const path = [text(reference.title) || 'Untitled', ...texts(reference.headingPath)].join(' › ');
  return h('div', { class: 'reference' }, h('span', { dir: 'auto' }, path), ' ', sourceLink(reference.source));
}

export function coverageView(coverage) {
  const incomplete = coverage && !coverage.complete;
  return h(
    'ul',
    { class: incomplete ? 'coverage incomplete' : 'coverage' },
    coverageSentences(coverage).map((sentence) => h('li', { dir: 'auto' }, sentence)),
  );
}

/** One verified source; `quotes` of the claim it was opened from are marked in the excerpt. */
export function sourceView(source, quotes = []) {
  const lines = list(source.excerpt).map(text);
  const references = records(source.references);
  return [
    lines.length ? h('h5', {}, 'Found') : null,
    lines.length ? excerptView(lines, quotes) : null,
    h('h5', {}, 'Asked'),
    h('pre', { class: 'detail', dir: 'auto' }, text(source.detail)),
    h('h5', {}, 'Covered'),
    coverageView(source.coverage),
    references.length ? h('h5', {}, 'Documents') : null,
    references.map(referenceView),
    h('p', { class: 'quiet' }, `Fetched ${utc(source.fetchedAt)}`),
  ];
}

function excerptView(lines, quotes) {
  const rows = highlight(lines, quotes).map((pieces) =>
    h('div', { class: 'line', dir: 'auto' }, pieces.map((piece) => (piece.marked ? h('mark', {}, piece.text) : piece.text))),
  );
  return h('div', { class: 'excerpt', tabindex: 0, role: 'group', 'aria-label': 'Excerpt' }, rows);
}

/** Quotes that none of these sources shows in its excerpt; the excerpt is a part of what was checked. */
export function unseenQuotes(quotes, sources) {
  return quotes.filter((quote) => !sources.some((source) => occurs(list(source.excerpt).map(text), quote)));
}

// Some sources already begin with their kind: "logs checkout".
export const sourceTitle = (source) => {
  const noun = toolName(source.kind);
  const title = text(source.title);
  const named = title.toLowerCase().startsWith(noun.toLowerCase());
  return named
    ? h('bdi', {}, noun + title.slice(noun.length))
    : [`${noun}: `, h('bdi', {}, title)];
};

/**
 * Buttons `[S1]` and the place under them where each opens its panel; the text around doesn't move away.
 * `entries`: `{ label, title, render }`.
 */
export function openers(entries) {
  const place = h('div', { class: 'opened' });
  const buttons = entries.map(({ label, title, render }) => {
    const id = newDomId('evidence');
    const button = h(
      'button',
      { type: 'button', class: 'opener', 'aria-expanded': 'false', 'aria-label': `Evidence ${label}`, 'data-source': label },
      `[${label}]`,
    );
    button.addEventListener('click', () => {
      const open = document.getElementById(id);
      button.setAttribute('aria-expanded', String(!open));
      if (open) {
        open.remove();
        button.removeAttribute('aria-controls');
      } else {
        place.append(panel(id, title, render(), button));
        button.setAttribute('aria-controls', id);
        // With the claim itself in view, unless another panel already stands between the two.
        const opened = place.children.length === 1 ? place.parentElement : place.lastElementChild;
        opened.scrollIntoView({ block: 'nearest' });
      }
    });
    return button;
  });
  return { buttons, place };
}

function panel(id, title, body, button) {
  const close = () => {
    button.click();
    button.focus();
  };
  const node = h(
    'section',
    { id, class: 'panel', tabindex: -1, 'aria-label': button.getAttribute('aria-label') },
    h('div', { class: 'panel-head' }, h('strong', {}, title), h('button', { type: 'button', onclick: close }, 'Close')),
    body,
  );
  node.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape') return;
    event.stopPropagation(); // Escape closes the innermost thing; it doesn't cancel a running question
    close();
  });
  return node;
}

export function checkedView(source) {
  const status = text(source.status);
  return h(
    'li',
    { class: `checked ${status.toLowerCase().replace(/[^a-z_]/g, '')}` },
    h('p', {}, h('strong', {}, sourceTitle(source)), ' — ', OBSERVATION_STATUS[status] ?? 'Looked at'),
    text(source.detail) ? h('pre', { class: 'detail', dir: 'auto' }, source.detail) : null,
    source.errorCode ? prose(errorText({ code: text(source.errorCode) })) : null,
    source.coverage ? coverageView(source.coverage) : null,
  );
}

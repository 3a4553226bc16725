// What belongs to no turn: gateway errors, refusals of this page, problems of history.

import { h } from './element.js';

const MOST = 3;

export function createNotices(container) {
  function show(kind, words, code = '') {
    for (const old of [...container.children]) if (old.dataset.kind === kind && old.dataset.words === words) old.remove();
    const node = h(
      'div',
      { class: 'notice', role: 'alert', 'data-kind': kind, 'data-code': code || null },
      h('p', { dir: 'auto' }, words),
      h('button', { type: 'button', 'aria-label': 'Dismiss', onclick: () => node.remove() }, '✕'),
    );
    node.dataset.words = words;
    container.append(node);
    while (container.children.length > MOST) container.firstElementChild.remove();
  }

  function clear(kind) {
    for (const node of [...container.children]) if (node.dataset.kind === kind) node.remove();
  }

  return { show, clear };
}

// The sidebar: conversations, most recently active first, as real links.

import { ago } from '../words.js';
import { h } from './element.js';

export function createSessions({ list, conversations, now, onChoose }) {
  let drawn = '';

  function entries() {
    return [...conversations.all]
      .filter((conversation) => conversation.title || conversation.turns.length || conversation === conversations.shown)
      .filter((conversation) => conversation.sessionId || conversation.turns.length)
      .sort((one, other) => other.lastActiveAt - one.lastActiveAt);
  }

  function draw() {
    const rows = entries();
    const signature = JSON.stringify(rows.map(describe));
    if (signature === drawn) return;
    drawn = signature;
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    list.replaceChildren(...rows.map(row));
    if (focused) [...list.querySelectorAll('[data-key]')].find((node) => node.dataset.key === focused)?.focus();
  }

  function describe(conversation) {
    const running = conversations.active(conversation) !== null;
    return {
      key: conversation.sessionId ?? conversation.turns[0]?.requestId,
      title: conversation.title || conversation.turns[0]?.query || 'Conversation',
      when: conversation.lastActiveAt ? ago(conversation.lastActiveAt, now()) : '',
      current: conversation === conversations.shown,
      mark: running ? 'running' : conversation.unread ? 'new answer' : '',
    };
  }

  function row(conversation) {
    const { key, title, when, current, mark } = describe(conversation);
    const props = { 'data-key': key, 'aria-current': current ? 'page' : null, title };
    const content = [
      h('span', { class: 'title', dir: 'auto' }, title),
      h('span', { class: 'quiet' }, when, mark ? h('span', { class: 'mark' }, `${when ? ' · ' : ''}${mark}`) : null),
    ];
    const choose = (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
      event.preventDefault();
      onChoose(conversation);
    };
    // A conversation has no address until the service has given it an id.
    const link = conversation.sessionId
      ? h('a', { ...props, href: `#session=${conversation.sessionId}`, onclick: choose }, content)
      : h('button', { ...props, type: 'button', onclick: choose }, content);
    return h('li', {}, link);
  }

  conversations.listen(({ type }) => {
    if (type === 'sessions' || type === 'tick') draw();
  });
  draw();
}

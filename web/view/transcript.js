// The shown conversation's turns, in the store's order.

import { createTurnView } from './turn.js';
import { h } from './element.js';

const EXAMPLES = [
  'What can you do?',
  'How do I restart the payment gateway safely?',
  'Why are checkout requests failing? It started at 14:00 UTC today.',
];

export function createTranscript({ container, follower, conversations, actions, demo, now }) {
  const views = new Map();
  const notice = h('div', { class: 'empty' });
  const earlier = h('button', { type: 'button', class: 'earlier', hidden: true }, 'Earlier questions');
  const turns = h('div', { class: 'turns' });
  container.append(earlier, notice, turns);
  earlier.addEventListener('click', () => actions.earlier(conversations.shown));

  function rebuild() {
    views.clear();
    turns.replaceChildren();
    arrange();
    frame();
    follower.reveal(lastNode());
  }

  function arrange() {
    const { shown } = conversations;
    const wanted = shown.turns.map(viewOf);
    for (const [turn, view] of views) {
      if (shown.turns.includes(turn)) continue;
      view.node.remove();
      views.delete(turn);
    }
    wanted.forEach(({ node }, index) => {
      if (turns.children[index] !== node) turns.insertBefore(node, turns.children[index] ?? null);
    });
  }

  function viewOf(turn) {
    if (!views.has(turn)) views.set(turn, createTurnView(turn, { actions, demo, now }));
    return views.get(turn);
  }

  const lastNode = () => turns.lastElementChild;

  /** What surrounds the turns: the way to earlier ones, or why there are none. */
  function frame() {
    const { shown } = conversations;
    earlier.hidden = !shown.before;
    notice.hidden = shown.turns.length > 0;
    if (!notice.hidden) notice.replaceChildren(...emptyView(shown, actions));
  }

  function onTurn({ turn, added, stored }) {
    if (turn.conversation !== conversations.shown) return;
    const isLast = turn.conversation.turns.at(-1) === turn;
    if (added && !isLast && stored) {
      follower.keepPlace(() => { arrange(); frame(); });
      return;
    }
    const update = () => {
      arrange();
      views.get(turn)?.update();
      frame();
    };
    follower.change(update, () => (isLast ? views.get(turn)?.node : null));
  }

  conversations.listen((event) => {
    if (event.type === 'turn') onTurn(event);
    else if (event.type === 'shown') event.bound ? follower.change(arrange) : rebuild();
    else if (event.type === 'tick') for (const view of views.values()) view.tick();
    else if (event.type === 'conversation' && event.conversation === conversations.shown) {
      follower.keepPlace(() => { arrange(); frame(); });
    }
  });
  return { rebuild, reveal: () => follower.reveal(lastNode()) };
}

function emptyView(conversation, actions) {
  if (conversation.missing) {
    return [
      h('h2', {}, 'No such conversation'),
      h('p', {}, 'It doesn’t exist, or it belongs to somebody else.'),
      h('button', { type: 'button', onclick: () => actions.newConversation() }, 'New conversation'),
    ];
  }
  if (conversation.sessionId && !conversation.loaded) return [h('p', { class: 'quiet' }, 'Loading the conversation…')];
  return [
    h('h2', {}, 'What is wrong?'),
    h('p', {}, 'Ask about an incident or a runbook. Every claim of an answer opens the evidence it rests on.'),
    h(
      'ul',
      { class: 'plain examples' },
      EXAMPLES.map((example) => h('li', {}, h('button', { type: 'button', onclick: () => actions.fill(example) }, example))),
    ),
  ];
}
